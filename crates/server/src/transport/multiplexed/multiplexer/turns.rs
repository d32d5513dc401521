//! The turns of open requests: of readers whose topics have grown, of services that have more, and of heartbeats.

use std::time::Duration;

use anemone_wire::multiplexed::{Id, Reply};
use tokio::time::Instant;

use super::Multiplexer;
use crate::Problem;
use crate::alarms::Alarm;
use crate::clients::access::CLIENT_GONE;
use crate::exchange::arrival;
use crate::stream::EndlessPart;
use crate::transport::multiplexed::Outlet;
use crate::transport::multiplexed::call::Served;
use crate::transport::multiplexed::call_waker::CallWakers;
use crate::transport::multiplexed::sending::{send_failure, send_item, send_page, send_reply};
use crate::transport::multiplexed::work::Work;
use crate::turn::TURN_TIME;

/// The most requests served at once. Then other connections have their turn, as they have after [`TURN_TIME`].
const TURNS_MAX: usize = 64;

impl Multiplexer {
    /// Serves requests, after a wake-up or when queued output was written.
    pub(in crate::transport::multiplexed) fn ready(&mut self, outlet: &mut impl Outlet) {
        for (id, result) in self.submissions.take() {
            if let Some(Work::Submit(submitted)) = self.session.end(id) {
                self.payloads.remove(submitted.bytes);
                self.send_result(id, &submitted, result, outlet);
            }
        }
        self.topics.with_news().for_each(|id| self.session.give_turn(id));
        let woken = self.call_wakers.as_ref().map(CallWakers::take);
        woken.into_iter().flatten().for_each(|id| self.session.give_turn(id));
        let now = Instant::now();
        if self.alarm.as_ref().is_some_and(|alarm| alarm.due() <= now) {
            self.end_late_calls(now, outlet);
            self.alarm = self.give_turns_to_quiet(now);
        }
        let mut turns = 0;
        while self.session.has_turns() {
            let passed = if turns == 0 { Duration::ZERO } else { now.elapsed() };
            if is_enough(turns, passed) || outlet.queued_bytes() >= self.output_bytes_max() {
                // Continues later, after pending output was written.
                self.wake();
                break;
            }
            if let Some(id) = self.session.take_turn() {
                self.serve(id, now, outlet);
            }
            turns += 1;
        }
    }

    /// Serves requests before the server stops: one turn for all of them, and then watchers of runs, which were cancelled
    /// before, until they see the end. Together these get as many bytes as the output may hold, counted before
    /// compression.
    pub(in crate::transport::multiplexed) fn finish(&mut self, outlet: &mut impl Outlet) {
        self.ready(outlet);
        let (now, mut left) = (Instant::now(), self.output_bytes_max());
        while left > 0
            && let Some(id) = self.session.take_turn()
        {
            if self.session.work(id).is_some_and(|work| work.watches_run()) {
                left = left.saturating_sub(self.serve(id, now, outlet).max(1));
            }
        }
    }

    /// Serves a request in its turn. Returns the bytes of a page that it has sent.
    fn serve(&mut self, id: Id, now: Instant, outlet: &mut impl Outlet) -> usize {
        match self.session.work(id) {
            None | Some(Work::Submit(_)) => {}
            Some(Work::Call(_)) => self.serve_call(id, now, outlet),
            Some(Work::Answer(asked, access)) => {
                let (asked, access) = (asked.clone(), access.clone());
                self.answer(id, &asked, &access, outlet);
                self.end(id);
            }
            Some(Work::Read(reply)) => {
                let heartbeat = early(self.site.limits.heartbeat);
                let topics = &self.topics;
                match reply.poll(now, heartbeat, |reader| topics.read(reader)) {
                    EndlessPart::Page(page) => {
                        let bytes = send_page(id, page.encoded.without_ids(), outlet);
                        reply.reader().access().count_sent(bytes);
                        if reply.is_behind() || !reply.is_open() {
                            self.session.give_turn(id);
                        }
                        return bytes;
                    }
                    EndlessPart::Failed { notice, problem } => {
                        notice.iter().for_each(|item| send_item(id, item, reply, outlet));
                        reply.note(&problem, &self.site.refusals);
                        let access = self.end(id);
                        send_failure(id, &problem, &access, outlet);
                    }
                    EndlessPart::Ended(notice) => {
                        send_item(id, &notice, reply, outlet);
                        let access = self.end(id);
                        send_reply(id, Reply::answer(""), &access, outlet);
                    }
                    EndlessPart::Item(item) => send_item(id, &item, reply, outlet),
                    EndlessPart::Nothing => {}
                    EndlessPart::Over => {
                        let access = self.end(id);
                        access.set_end(CLIENT_GONE);
                        send_reply(id, Reply::done(), &access, outlet);
                    }
                }
            }
        }
        0
    }

    fn serve_call(&mut self, id: Id, now: Instant, outlet: &mut impl Outlet) {
        let output_bytes_max = self.output_bytes_max();
        let (Some(Work::Call(call)), Some(wakers)) = (self.session.work(id), &mut self.call_wakers)
        else {
            return;
        };
        let before = outlet.queued_bytes();
        let served = call.serve(id, wakers, outlet, output_bytes_max);
        if self.has_ended && outlet.queued_bytes() > before {
            call.set_due(now + self.site.limits.write_timeout);
        }
        match served {
            Served::Waiting => {}
            Served::Again => self.session.give_turn(id),
            Served::Over => drop(self.end(id)),
            Served::Started(run) => {
                let (access, bytes) = (call.access().clone(), call.payload_bytes());
                match self.follow(id, run, &access, outlet) {
                    Ok(()) => self.payloads.remove(bytes),
                    Err(problem) => self.fail_call(id, &problem, outlet),
                }
            }
            Served::Failed(problem) => self.fail_call(id, &problem, outlet),
        }
    }

    fn fail_call(&mut self, id: Id, problem: &Problem, outlet: &mut impl Outlet) {
        if let Some(Work::Call(call)) = self.session.work(id) {
            let (method, path) = call.line();
            arrival::note(&self.site, self.client, problem, method, path);
            call.send_problem(id, problem, outlet);
        }
        self.end(id);
    }

    /// Ends the calls of a client that has ended its side, if nothing more of them came in time.
    fn end_late_calls(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let is_late = |work: &Work| matches!(work, Work::Call(call) if call.due().is_some_and(|due| due <= now));
        let late: Vec<Id> =
            self.session.works().filter_map(|(id, work)| is_late(work).then_some(id)).collect();
        for id in late {
            let problem = Problem::client_gone(self.site.limits.write_timeout);
            self.fail_call(id, &problem, outlet);
        }
    }

    /// Sets the alarm, unless it is set for an earlier time.
    pub(super) fn set_alarm(&mut self, due: Instant) {
        let is_set = self.alarm.as_ref().is_some_and(|alarm| alarm.due() <= due);
        if !is_set && let Some(waker) = &self.waker {
            self.alarm = Some(self.alarms.set(due, waker.clone()));
        }
    }

    /// Gives a turn to each reader whose heartbeat is due. Returns the next alarm, if there are readers or calls: a
    /// connection that waits for a service is not idle.
    fn give_turns_to_quiet(&mut self, now: Instant) -> Option<Alarm> {
        let heartbeat = self.site.limits.heartbeat;
        let (mut next, mut quiet) = (None, Vec::new());
        for (id, work) in self.session.works() {
            let due = match work {
                Work::Read(reply) if reply.due(early(heartbeat)) <= now => {
                    quiet.push(id);
                    now + reply.silence_max(heartbeat)
                }
                Work::Read(reply) => reply.due(heartbeat),
                Work::Call(call) => call.due().unwrap_or(now + heartbeat),
                Work::Answer(..) | Work::Submit(_) => continue,
            };
            next = Some(next.map_or(due, |next: Instant| next.min(due)));
        }
        quiet.into_iter().for_each(|id| self.session.give_turn(id));
        Some(self.alarms.set(next?, self.waker.clone()?))
    }
}

/// Returns the time after which a reader gets a heartbeat: a little before it has to, so that many share a wake-up.
fn early(heartbeat: Duration) -> Duration {
    heartbeat - heartbeat / 8
}

/// Returns true if a connection that has served so many requests in this time lets others have their turn. At least one is
/// served, and one may take as long as its answer.
fn is_enough(turns: usize, passed: Duration) -> bool {
    turns >= TURNS_MAX || passed >= TURN_TIME
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of requests that are served at once, each of which takes so long.
    fn served(each: Duration) -> usize {
        let passed = |turns: usize| each * u32::try_from(turns).unwrap();
        (0..).find(|turns| is_enough(*turns, passed(*turns))).unwrap()
    }

    #[test]
    fn others_have_their_turn_after_many_small_answers_or_one_that_is_dear() {
        assert_eq!(served(Duration::ZERO), TURNS_MAX);
        assert_eq!(served(TURN_TIME / 10), 10);
        assert_eq!(served(TURN_TIME), 1);
        assert_eq!(served(TURN_TIME * 100), 1);
    }
}
