//! The destination of a request, by its path. It is the same on every transport.

use crate::Problem;
use crate::exchange::resource::OwnResource;
use crate::exchange::survey::Survey;
use crate::request::client::Client;
use crate::request::own_path::{OwnPath, ReadPath};
use crate::request::query::asks_for_topics;
use crate::site::{Beside, Site};

#[derive(Debug)]
pub(crate) enum Destination<'s, 'p> {
    /// A service or a file.
    Beside(Beside<'s>),
    Resource(OwnResource),
    /// The lists for which all threads are asked.
    Survey(Survey),
    Events(ReadPath<'p>),
    ManyTopics,
    Explanation(&'p str),
    /// This path of a transport's own.
    Transport(&'static str),
}

impl<'s, 'p> Destination<'s, 'p> {
    /// Returns the destination of a request with a normalized path.
    ///
    /// # Errors
    /// When there is nothing at the path, or the client may not see it.
    pub(crate) fn of(
        site: &'s Site,
        client: Client,
        path: &'p str,
        query: Option<&str>,
    ) -> Result<Self, Problem> {
        if let Some(beside) = site.beside(path) {
            return Ok(Self::Beside(beside));
        }
        let is_list = matches!(OwnPath::at(path), Some((OwnPath::TOPICS, None)));
        if is_list && asks_for_topics(query) {
            return Ok(Self::ManyTopics);
        }
        if let Some(resource) = OwnResource::at(site, client, path, query)? {
            return Ok(Self::Resource(resource));
        }
        if let Some(survey) = Survey::at(site, client, path, query)? {
            return Ok(Self::Survey(survey));
        }
        if let Some(own) = site.offered.iter().find(|own| **own == path) {
            return Ok(Self::Transport(own));
        }
        let found = match OwnPath::at(path) {
            Some((OwnPath::PROBLEMS, Some(name))) => Some(Self::Explanation(name)),
            _ => ReadPath::at(path).map(Self::Events),
        };
        found.ok_or_else(|| Problem::nothing_at(path))
    }
}
