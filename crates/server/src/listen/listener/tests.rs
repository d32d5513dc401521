mod overloaded;
mod panicking;

use tokio::sync::Notify;

use super::*;

#[tokio::test]
async fn a_thread_that_panics_is_told_of_and_one_that_ends_is_not() {
    let failed = Arc::<Notify>::default();
    let run = |work: fn()| {
        let watched = PanicGuard(Arc::clone(&failed));
        let work = move || {
            let _watched = watched;
            work();
        };
        thread::spawn(work).join()
    };
    run(|| {}).unwrap();
    let told = async { tokio::time::timeout(std::time::Duration::ZERO, failed.notified()).await };
    assert!(told.await.is_err());
    assert!(run(|| std::panic::resume_unwind(Box::new("on purpose"))).is_err());
    failed.notified().await;
}
