use std::cell::RefCell;
use std::rc::Rc;

use tokio::task::{LocalSet, spawn_local};
use tokio::time::advance;

use super::*;

type Log = Rc<RefCell<Vec<&'static str>>>;

/// Has ten turns, each of which takes so long.
async fn take_turns(rounds: Arc<Rounds>, log: Log, name: &'static str, each: Duration) {
    let mut own = InRounds::new(&rounds);
    for _ in 0..10 {
        own.admitted().await;
        log.borrow_mut().push(name);
        own.spend(each);
        yield_now().await;
    }
}

/// Returns the log of tasks with turns of this length, and of another kind of task, until these have had all turns.
async fn logged(names: &[&'static str], each: Duration) -> Vec<&'static str> {
    let log = Log::default();
    let turns = async {
        let rounds = Arc::<Rounds>::default();
        let beginning = spawn_local(Arc::clone(&rounds).run());
        let other = Rc::clone(&log);
        let other = spawn_local(async move {
            loop {
                other.borrow_mut().push("other");
                yield_now().await;
            }
        });
        let begin = |name: &&'static str| {
            spawn_local(take_turns(Arc::clone(&rounds), Rc::clone(&log), name, each))
        };
        let tasks: Vec<_> = names.iter().map(begin).collect();
        for task in tasks {
            task.await.unwrap();
        }
        beginning.abort();
        other.abort();
    };
    LocalSet::new().run_until(turns).await;
    log.take()
}

#[tokio::test(start_paused = true)]
async fn another_task_has_its_turn_between_any_two_that_take_long() {
    let log = logged(&["a", "b", "c", "d"], 10 * SHARE).await;
    assert!(log.windows(2).all(|two| two.contains(&"other")), "{log:?}");
    // Those that take long have their turns in order.
    let dear: Vec<_> = log.into_iter().filter(|name| *name != "other").collect();
    assert_eq!(dear.len(), 40);
    assert!(dear.windows(2).all(|two| two[0] != two[1]), "{dear:?}");
}

#[tokio::test(start_paused = true)]
async fn short_turns_share_a_round() {
    let log = logged(&["a"; 40], SHARE / 20).await;
    let most = log.split(|name| *name == "other").map(<[_]>::len).max().unwrap();
    assert!((10..=20).contains(&most), "{most} turns in a round");
}

#[tokio::test(start_paused = true)]
async fn a_short_turn_waits_for_two_dear_ones_and_not_for_all() {
    let log = Log::default();
    let turns = async {
        let rounds = Arc::<Rounds>::default();
        let beginning = spawn_local(Arc::clone(&rounds).run());
        let begin =
            |name, each| spawn_local(take_turns(Arc::clone(&rounds), Rc::clone(&log), name, each));
        let dear: Vec<_> = (0..20).map(|_| begin("dear", 10 * SHARE)).collect();
        // By then, each has had a turn, and is known to be dear.
        while log.borrow().len() < 3 * dear.len() {
            yield_now().await;
        }
        log.borrow_mut().clear();
        let light = begin("light", SHARE / 20);
        for task in dear.into_iter().chain([light]) {
            task.await.unwrap();
        }
        beginning.abort();
    };
    LocalSet::new().run_until(turns).await;
    let log = log.take();
    let between = log.split(|name| *name == "light");
    let waits: Vec<_> = between.map(<[_]>::len).collect();
    assert_eq!(waits.iter().sum::<usize>(), 140, "nobody is left out");
    // Its first turn comes after theirs, since nobody knows that it is short.
    let [first, short @ .., _] = &*waits else { panic!("{waits:?}") };
    assert!(*first <= 20 && short.len() == 9, "{waits:?}");
    assert!(short.iter().all(|wait| *wait <= 2), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_lane_wait_for_each_other_and_no_other_lane_for_them() {
    let log = Log::default();
    let turns = async {
        let rounds = Arc::<Rounds>::default();
        let beginning = spawn_local(Arc::clone(&rounds).run());
        let lane = Arc::<Lane>::default();
        let once = |name, mut own: InRounds, each| {
            let log = Rc::clone(&log);
            spawn_local(async move {
                own.admitted().await;
                log.borrow_mut().push(name);
                own.spend(each);
            })
        };
        // Each has one turn, so nobody knows before that it is dear. One has gone before its turn.
        let many = (0..100).map(|_| once("many", InRounds::of_lane(&rounds, &lane), 10 * SHARE));
        let many: Vec<_> = many.collect();
        yield_now().await;
        many[50].abort();
        for _ in 0..5 {
            once("one", InRounds::new(&rounds), SHARE / 20).await.unwrap();
        }
        for task in many {
            let _ = task.await;
        }
        beginning.abort();
    };
    LocalSet::new().run_until(turns).await;
    let log = log.take();
    let last = log.iter().rposition(|name| *name == "one").unwrap();
    assert!(last <= 5 * 4, "each waits for few of the many: {last}");
    assert_eq!(log.len(), 104, "nobody is left out");
}

#[tokio::test(start_paused = true)]
async fn who_asks_seldom_waits_for_no_round() {
    let mut seldom = InRounds::new(&Arc::default());
    for _ in 0..3 {
        assert!(seldom.admitted().now_or_never().is_some());
        seldom.spend(SHARE);
        // The others have as much time.
        advance(2 * SHARE).await;
    }
    assert!(seldom.admitted().now_or_never().is_some());
    seldom.spend(SHARE);
    advance(SHARE).await;
    assert!(seldom.admitted().now_or_never().is_none(), "they have had none yet");
}

#[tokio::test(start_paused = true)]
async fn who_is_admitted_and_does_not_come_holds_up_nobody() {
    let turns = async {
        let rounds = Arc::<Rounds>::default();
        rounds.spend(SHARE);
        // One never comes again, and one is gone.
        let mut absent = InRounds::new(&rounds);
        assert!(absent.admitted().now_or_never().is_none());
        let mut gone = InRounds::new(&rounds);
        assert!(gone.admitted().now_or_never().is_none());
        drop(gone);
        let beginning = spawn_local(Arc::clone(&rounds).run());
        InRounds::new(&rounds).admitted().await;
        beginning.abort();
    };
    LocalSet::new().run_until(turns).await;
}
