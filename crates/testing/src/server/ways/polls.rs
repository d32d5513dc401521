//! Polls or long polls, one after the other on one connection.

use std::collections::VecDeque;
use std::io::{self, BufReader, Write};
use std::time::Instant;

use super::told::{end, parse};
use super::{Reading, Told, Wire};
use crate::{PATIENCE, Reply, request};

pub(super) struct Polls {
    reader: BufReader<Wire>,
    path: String,
    /// The query of each request, without the position.
    rest: String,
    next: String,
    told: VecDeque<Told>,
    /// The next request is sent already.
    is_asked: bool,
}

impl Polls {
    /// `own` is this way's addition to a query, a wait. The first poll has none, so that there is a position even
    /// without events.
    pub(super) fn open(wire: Wire, path: &str, query: &str, own: &str) -> io::Result<Self> {
        let is_begin = |part: &&str| part.starts_with("after=") || part.starts_with("since=");
        let begin = query.split('&').find(is_begin);
        let position = begin.and_then(|begin| begin.strip_prefix("after="));
        let rest = query.split('&').filter(|part| !is_begin(part) && !part.is_empty());
        let rest: String = rest.map(|part| format!("&{part}")).collect();
        let mut polls = Self {
            reader: BufReader::new(wire),
            path: path.to_owned(),
            rest: rest.clone() + own,
            next: String::new(),
            told: VecDeque::new(),
            is_asked: false,
        };
        polls.ask(&(begin.unwrap_or_default().to_owned() + &rest))?;
        polls.answer()?;
        let begin = position.filter(|position| position.find('-').is_some_and(|dash| dash > 0));
        let begin = begin.map_or_else(|| polls.begin(), str::to_owned);
        polls.told.push_front(Told::Position(begin));
        Ok(polls)
    }

    /// The beginning of the first page.
    fn begin(&self) -> String {
        let first = self.told.iter().find_map(|told| match told {
            Told::Event { position, .. } => position.clone(),
            _ => None,
        });
        let Some(first) = first else { return self.next.clone() };
        let (epoch, offset) = first.split_once('-').unwrap();
        format!("{epoch}-{}", offset.parse::<u64>().unwrap() - 1)
    }

    fn ask(&mut self, query: &str) -> io::Result<()> {
        let target = format!("{}?{}", self.path, query.trim_start_matches('&'));
        let wire = self.reader.get_mut();
        let request = request(wire.peer(), "GET", &target, &[]);
        self.is_asked = true;
        wire.write_all(request.as_bytes())
    }

    fn answer(&mut self) -> io::Result<()> {
        self.is_asked = false;
        let reply = Reply::try_read(&mut self.reader, "GET")?;
        assert_eq!(reply.status, 200, "{reply:?}");
        let page = parse(&reply.body);
        self.next = page["next"].as_str().unwrap().to_owned();
        if !page["gap"].is_null() {
            self.told.push_back(Told::Gap(page["gap"].clone()));
        }
        if !page["skipped"].is_null() {
            self.told.push_back(Told::Skipped(page["skipped"].as_u64().unwrap()));
        }
        for event in page["events"].as_array().unwrap() {
            let position = format!("{}-{}", page["epoch"].as_str().unwrap(), event["offset"]);
            self.told
                .push_back(Told::Event { position: Some(position), data: event["data"].clone() });
        }
        if let Some(Told::Event { position: Some(last), .. }) = self.told.back() {
            assert_eq!(*last, self.next);
        }
        if !page["end"].is_null() {
            self.told.push_back(end(&page["end"]));
        }
        Ok(())
    }
}

impl Reading for Polls {
    fn read(&mut self) -> io::Result<Told> {
        let begun = Instant::now();
        loop {
            if let Some(told) = self.told.pop_front() {
                return Ok(told);
            }
            assert!(begun.elapsed() < PATIENCE, "nothing comes");
            if !self.is_asked {
                self.ask(&format!("after={}{}", self.next, self.rest))?;
            }
            self.answer()?;
        }
    }

    fn wait(&mut self) {
        if self.rest.contains("&wait=") && self.told.is_empty() && !self.is_asked {
            self.ask(&format!("after={}{}", self.next, self.rest)).unwrap();
        }
    }
}
