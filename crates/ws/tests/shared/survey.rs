//! A survey tells each connection once, a few at a time.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::any::Any;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

use anemone_testing::PATIENCE;
use anemone_ws::proto::{CloseCode, CloseFrame, Message, Output, Sender};
use anemone_ws::reactor::{
    ConnectionId, Handler, Opening, Reactor, Speaks, StreamHandler, SurveyedConnection,
};
use anemone_ws::{Memory, Negotiated};
use tokio::runtime::Builder;

/// Describes itself by its number.
struct Numbered(usize);

impl StreamHandler for Numbered {
    fn on_bytes(&mut self, bytes: &[u8], output: &mut Output) -> usize {
        output.extend_from_slice(bytes);
        bytes.len()
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.0))
    }
}

impl Handler for Numbered {
    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender) {
        sender.send(message).unwrap();
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.0))
    }
}

fn on_thread(work: impl AsyncFnOnce(Reactor)) {
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
    runtime.unwrap().block_on(async {
        work(Reactor::start(Memory::default()).unwrap()).await;
    });
}

/// The client's end and the server's, which is non-blocking.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    (client, server)
}

/// Takes `count` streams into the loop, numbered from 0. Their clients are returned.
fn adopt(reactor: &Reactor, count: usize) -> Vec<TcpStream> {
    let one = |number| {
        let (client, server) = pair();
        reactor.adopt_stream(server, PATIENCE, Numbered(number));
        client
    };
    (0..count).map(one).collect()
}

fn number(connection: &SurveyedConnection) -> Option<usize> {
    connection.description.as_ref().and_then(|said| said.downcast_ref()).copied()
}

/// All connections, asked for in pages of this length.
async fn pages(reactor: &Reactor, most: usize) -> Vec<SurveyedConnection> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = reactor.survey(after, most).await;
        assert!(page.len() <= most);
        let Some(last) = page.last() else { return all };
        after = Some(last.id);
        all.extend(page);
    }
}

/// Drives `count` WebSockets in tasks, numbered from `first`. Their clients are returned.
fn drive(reactor: &Reactor, first: usize, count: usize) -> Vec<tokio::io::DuplexStream> {
    let one = |number| {
        let (client, server) = tokio::io::duplex(64);
        let reactor = reactor.clone();
        tokio::task::spawn_local(async move {
            let never = std::future::pending();
            reactor.drive(server, Negotiated::default(), Numbered(number), never).await;
        });
        client
    };
    (first..first + count).map(one).collect()
}

async fn some_turns() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn each_connection_is_described_once_whatever_the_length_of_a_page() {
    on_thread(async |reactor| {
        let clients = adopt(&reactor, 150);
        let driven = drive(&reactor, clients.len(), 70);
        some_turns().await;
        for most in [1, 7, 64, 65, 219, 220, 1000] {
            let all = pages(&reactor, most).await;
            assert!(all.is_sorted_by(|one, next| one.id < next.id), "in pages of {most}");
            let numbers: Vec<_> = all.iter().map(|one| number(one).unwrap()).collect();
            assert_eq!(numbers, (0..220).collect::<Vec<_>>(), "in pages of {most}");
            let are_driven = |one: &&SurveyedConnection| one.speaks == Speaks::WebSocket;
            assert_eq!(all.iter().filter(are_driven).count(), driven.len());
        }
        assert!(reactor.survey(None, 0).await.is_empty());
        assert_eq!(reactor.figures().connections, 220);
    });
}

#[test]
fn a_survey_of_many_lets_the_others_have_their_turns() {
    on_thread(async |reactor| {
        let clients = adopt(&reactor, 200);
        some_turns().await;
        let before = reactor.figures().turns;
        assert_eq!(reactor.survey(None, 1000).await.len(), clients.len());
        let turns = reactor.figures().turns - before;
        assert!(turns >= 4, "200 connections, at most 64 in a turn: {turns} turns");
    });
}

#[test]
fn a_survey_that_nobody_waits_for_is_dropped_and_those_that_are_over_are_missing() {
    on_thread(async |reactor| {
        let (client, server) = pair();
        let (_other, other_server) = pair();
        reactor.adopt_stream(server, PATIENCE, Numbered(1));
        reactor.adopt_stream(other_server, PATIENCE, Numbered(2));
        let mut driven = drive(&reactor, 3, 2);
        some_turns().await;
        let all = reactor.survey(None, 9).await;
        assert_eq!(all.iter().map(number).collect::<Vec<_>>(), [1, 2, 3, 4].map(Some));
        {
            let mut survey = Box::pin(reactor.survey(None, 9));
            let waker = std::task::Waker::noop();
            let poll = survey.as_mut().poll(&mut std::task::Context::from_waker(waker));
            assert!(poll.is_pending(), "the loop has to have a turn");
        }
        drop(client);
        driven.remove(0);
        while reactor.figures().connections > 2 {
            tokio::task::yield_now().await;
        }
        let left = reactor.survey(None, 9).await;
        assert_eq!(left.iter().map(number).collect::<Vec<_>>(), [2, 4].map(Some));
        // Another connection in the same place has another id.
        let (_third, third_server) = pair();
        reactor.adopt_stream(third_server, PATIENCE, Numbered(5));
        some_turns().await;
        let again = reactor.survey(None, 1).await;
        assert_eq!(number(&again[0]), Some(5));
        assert_ne!(again[0].id, all[0].id);
        assert_eq!(ConnectionId::from_bits(again[0].id.to_bits()), again[0].id);
    });
}

/// Sends more than a socket takes, and closes when it is told.
struct Floods;

impl Handler for Floods {
    fn on_open(&mut self, _: anemone_ws::reactor::SendWaker, sender: &mut Sender) {
        sender.send(Message::Binary(&vec![0; 32 << 20])).unwrap();
        sender.close(Some(&CloseFrame::new(CloseCode::NORMAL, ""))).unwrap();
    }

    fn on_message(&mut self, _: Message<'_>, _: &mut Sender) {}
}

#[test]
fn what_waits_for_a_peer_and_what_a_thread_has_done_is_told() {
    on_thread(async |reactor| {
        let (_undecided, server) = pair();
        reactor.adopt_opening(server, PATIENCE, |_| Opening::refuse(Vec::new()));
        let (_slow, server) = pair();
        reactor.adopt(server, Negotiated::default(), Floods);
        let (mut client, server) = pair();
        reactor.adopt_stream(server, PATIENCE, Numbered(7));
        client.write_all(b"12345").unwrap();
        while reactor.figures().received_bytes < 5 {
            tokio::task::yield_now().await;
        }
        let all = reactor.survey(None, 9).await;
        let speaks = [Speaks::Undecided, Speaks::WebSocket, Speaks::Stream];
        assert_eq!(all.iter().map(|one| one.speaks).collect::<Vec<_>>(), speaks);
        assert_eq!(all.iter().map(number).collect::<Vec<_>>(), [None, None, Some(7)]);
        assert_eq!(all.iter().map(|one| one.is_closing).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(
            all.iter().map(|one| one.queued_bytes > 1 << 20).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert!(all[1].held_bytes >= all[1].queued_bytes && !all[1].is_compressed);
        let figures = reactor.figures();
        assert_eq!((figures.connections, figures.received_bytes), (3, 5));
        assert!(figures.sent_bytes > 32 << 20 && figures.events >= 1 && figures.turns >= 1);
    });
}
