//! A run is started once, watched to its end over any transport, and lost by nobody who is cut off.

use std::io;
use std::sync::{Arc, Mutex};

use anemone_client::{
    Client, EndReason, Error, Item, RunEvent, RunHandle, RunList, RunState, Subscribe, Timeouts,
    Via,
};

use crate::fake::{Conn, DONE, Fake, KEY, Log, data};
use crate::{SOON, told};

fn status(state: &str) -> String {
    let ended = if state == "done" { r#""result":42,"# } else { r#""result":null,"# };
    format!(
        r#"{{"key":"{KEY}","service":"/primes","state":"{state}","progress":0.5,"text":"half","left":2,"place":null,
           "created":1,"started":2,"ended":null,"next":"e-7",{ended}"problem":null}}"#
    )
}

fn answer(conn: &mut Conn, status: &str, body: &str) -> io::Result<()> {
    conn.answer(status, "content-type: application/json\r\n", body)
}

fn client(fake: &Fake) -> Client {
    Client::new(&format!("http://{}", fake.address())).unwrap().retry(SOON)
}

#[tokio::test]
async fn a_run_is_started_once_however_often_it_is_asked_for() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let fake = Fake::start(move |number, mut conn| {
        let request = conn.request()?;
        assert_eq!((&*request.method, &*request.target), ("POST", "/primes"));
        assert_eq!(request.field("prefer"), Some("respond-async"));
        seen.lock().unwrap().push(request.field("idempotency-key").unwrap().to_owned());
        match number {
            0 => Ok(()),
            _ => answer(&mut conn, "202 Accepted", &status("queued")),
        }
    });
    let run = client(&fake).call("POST", "/primes").json("100").start_run().await.unwrap();
    assert_eq!((run.key(), run.url()), (KEY, format!("http://{}/runs/{KEY}", fake.address())));
    let keys = keys.lock().unwrap();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
}

#[tokio::test]
async fn a_run_of_a_server_below_a_path_is_where_its_location_says() {
    let fake = Fake::start(move |_, mut conn| {
        let request = conn.request()?;
        match (&*request.method, &*request.target) {
            ("POST", "/sub/primes") => {
                let fields = format!("content-type: application/json\r\nlocation: runs/{KEY}\r\n");
                conn.answer("202 Accepted", &fields, &status("queued"))
            }
            (_, target) if target == format!("/sub/runs/{KEY}?state") => {
                answer(&mut conn, "200 OK", &status("done"))
            }
            _ => answer(&mut conn, "404 Not Found", ""),
        }
    });
    let server = format!("http://{}", fake.address());
    for (server_url, target) in
        [(server.clone(), "/sub/primes"), (server.clone() + "/sub", "/primes")]
    {
        let client = Client::new(&server_url).unwrap().retry(SOON);
        let run = client.call("POST", target).json("100").start_run().await.unwrap();
        assert_eq!(run.url(), format!("{server}/sub/runs/{KEY}"));
        assert_eq!(run.state().await.unwrap().state(), RunState::Done);
    }
}

#[tokio::test]
async fn what_is_no_run_is_told_from_one() {
    for (status, body) in [
        ("200 OK", status("done")),
        ("202 Accepted", "{}".to_owned()),
        ("202 Accepted", status("queued").replace(KEY, "../../x")),
    ] {
        let fake = Fake::start(move |_, mut conn| {
            conn.request()?;
            answer(&mut conn, status, &body)
        });
        let error = client(&fake).call("POST", "/a").start_run().await.unwrap_err();
        assert!(matches!(error, Error::Foreign(_)), "{error:?}");
    }
    for url in
        ["http://a/runs/", "http://a/topics/x", &format!("http://a/{KEY}"), "http://a/runs/x"]
    {
        assert!(matches!(RunHandle::at(url), Err(Error::Url(_))), "{url}");
    }
}

#[tokio::test]
async fn a_run_is_watched_from_its_first_event_to_its_end_on_every_transport() {
    const LAST: u64 = 40;
    for via in Via::ALL {
        // Each connection is cut somewhere.
        let log = Log::of_run(LAST);
        let fake = Fake::start(move |number, conn| {
            log.serve_for(via, &mut conn.cut_after(400 + 97 * number), false)
        });
        let url = fake.url(via).replace("/topics/x", &format!("/runs/{KEY}"));
        let timeouts =
            Timeouts { poll_interval: std::time::Duration::from_millis(1), ..Timeouts::default() };
        let watch = Subscribe::new(url).via(via).retry(SOON).timeouts(timeouts);
        let mut watch = watch.start().unwrap();
        let all = told(&mut watch, LAST as usize).await;
        let mut expected = vec!["at e-0".to_owned()];
        expected.extend((1..LAST).map(|offset| format!("e-{offset}={}", data(offset))));
        expected.push(format!("e-{LAST}={DONE}"));
        assert_eq!(all, expected, "{via}");
        loop {
            match watch.next().await.unwrap().expect("the end is told") {
                Item::End { reason } => break assert_eq!(reason, EndReason::Ended, "{via}"),
                item => assert!(crate::short(&item).is_none(), "{via}: {item:?}"),
            }
        }
        assert!(watch.next().await.unwrap().is_none(), "{via}");
    }
}

#[tokio::test]
async fn a_handle_tells_the_state_and_the_result_and_cancels() {
    let fake = Fake::start(|_, mut conn| {
        loop {
            let request = conn.request()?;
            let target = request.target.strip_prefix(&format!("/runs/{KEY}")).unwrap();
            match (&*request.method, target) {
                ("GET", "?state") => answer(&mut conn, "200 OK", &status("running"))?,
                ("DELETE", "") => answer(&mut conn, "200 OK", &status("cancelled"))?,
                ("GET", "?mode=latest") if request.field("upgrade").is_some() => {
                    conn.upgrade(&request)?;
                    conn.message(r#"{"position":"e-6"}"#)?;
                    conn.message(&format!(r#"{{"position":"e-7","data":{DONE}}}"#))?;
                    conn.message(r#"{"end":{"reason":"ended"}}"#)?;
                    return conn.wait();
                }
                other => panic!("{other:?}"),
            }
        }
    });
    let run = RunHandle::at(&format!("http://{}/runs/{KEY}", fake.address())).unwrap();
    let state = run.state().await.unwrap();
    assert_eq!((state.state(), state.progress.done), (RunState::Running, Some(0.5)));
    assert_eq!(run.cancel().await.unwrap().state(), RunState::Cancelled);
    assert_eq!(run.result().await.unwrap().as_deref(), Some("42"));
    assert!(matches!(RunEvent::parse(DONE), Some(RunEvent::State(_))));
}

#[tokio::test]
async fn a_cancel_without_an_answer_may_have_ended_the_run() {
    let fake = Fake::start(|number, mut conn| {
        let request = conn.request()?;
        match (number, &*request.method) {
            (0, _) => Ok(()),
            (_, "DELETE") => conn.problem("409 Conflict", "", "run-ended"),
            _ => answer(&mut conn, "200 OK", &status("cancelled")),
        }
    });
    let run = RunHandle::at(&format!("http://{}/runs/{KEY}", fake.address())).unwrap();
    let run = run.with(|client| client.retry(SOON));
    assert_eq!(run.cancel().await.unwrap().state(), RunState::Cancelled);
}

#[tokio::test]
async fn runs_are_listed_and_a_run_that_is_gone_is_an_error() {
    let fake = Fake::start(|_, mut conn| {
        let request = conn.request()?;
        match &*request.target {
            "/runs?limit=7" => {
                let runs = format!(r#"{{"runs":[{},{}]}}"#, status("running"), status("done"));
                answer(&mut conn, "200 OK", &runs)
            }
            "/runs?limit=1&service=%2Fa%26b&state=done" => {
                answer(&mut conn, "200 OK", r#"{"total":0,"runs":[]}"#)
            }
            "/runs?limit=1&state=failed,done" => answer(
                &mut conn,
                "200 OK",
                &format!(r#"{{"total":3,"runs":[{}]}}"#, status("done")),
            ),
            _ => conn.problem("404 Not Found", "", "unknown-run"),
        }
    });
    let some = client(&fake).runs(&[RunState::Failed, RunState::Done], 1).await.unwrap();
    assert_eq!((some.total, some.runs.len()), (Some(3), 1));
    let none = client(&fake).runs_of("/a&b", &[RunState::Done], 1).await.unwrap();
    assert_eq!((none.total, none.runs.len()), (Some(0), 0));
    let RunList { total, runs, .. } = client(&fake).runs(&[], 7).await.unwrap();
    assert_eq!(total, None, "an older server does not say");
    assert_eq!(
        runs.iter().map(anemone_client::RunStatus::state).collect::<Vec<_>>(),
        [RunState::Running, RunState::Done]
    );
    assert_eq!(runs[1].change.clone().outcome().unwrap().unwrap().as_deref(), Some("42"));
    let run = RunHandle::at(&format!("http://{}/runs/{KEY}", fake.address())).unwrap();
    for error in [run.state().await.unwrap_err(), run.result().await.unwrap_err()] {
        let Error::Refused(refused) = error else { panic!("{error:?}") };
        assert_eq!(refused.problem(), Some("unknown-run"));
    }
}
