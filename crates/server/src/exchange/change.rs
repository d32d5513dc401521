//! A change to a topic or a run, which the client may make and the topic or run accepts.

use std::sync::Arc;

use anemone_hub::TopicName;
use anemone_hub::run::Run;

use crate::exchange::resource;
use crate::publish::PublishPermit;
use crate::request::client::Client;
use crate::request::methods::{Methods, not_allowed};
use crate::request::names::{is_index, topic_name, unknown_topic};
use crate::request::own_path::ReadPath;
use crate::site::Site;
use crate::{Kind, Problem};

#[derive(Debug)]
pub(crate) enum Change {
    Publish(PublishPermit),
    Delete(PublishPermit),
    Cancel(Arc<Run>),
}

impl Change {
    /// Returns the change that a method means, if the client may make it.
    pub(crate) fn of(
        site: &Site,
        client: Client,
        method: &str,
        path: ReadPath<'_>,
    ) -> Result<Self, Problem> {
        match path {
            ReadPath::Topic(name) if is_index(name) => Err(not_allowed(method, Methods::Read)),
            ReadPath::Topic(name) => Self::of_topic(site, client, method, &topic_name(name)?),
            ReadPath::Run(key) => {
                let run = site.run(key)?;
                // Who knows its key may cancel it.
                let is_deletion = method == "DELETE";
                is_deletion
                    .then_some(Self::Cancel(run))
                    .ok_or_else(|| not_allowed(method, Methods::Cancel))
            }
        }
    }

    fn of_topic(
        site: &Site,
        client: Client,
        method: &str,
        name: &TopicName,
    ) -> Result<Self, Problem> {
        let is_deletion = method == "DELETE";
        if !is_deletion && method != "POST" {
            return Err(unfit_for_topic(site, method, name));
        }
        let permit = site.publishing.permit(name, client);
        let permit = permit.map_err(|refusal| refusal.problem(name))?;
        match site.publishing.methods(name) {
            _ if !is_deletion => Ok(Self::Publish(permit)),
            Methods::Delete => Ok(Self::Delete(permit)),
            _ => Err(unfit_for_topic(site, method, name)),
        }
    }
}

/// Checks that the removal of a topic or a run has no condition, given whether the request has `If-Match`.
pub(crate) fn unconditional(has_if_match: bool) -> Result<(), Problem> {
    if has_if_match {
        // A condition would require that the topic does not change while it is removed from a disk.
        let detail = "If-Match is only for POST: DELETE takes no condition";
        return Err(Problem::new(Kind::BadParameter, detail));
    }
    Ok(())
}

/// Cancels a run. Returns its state as JSON.
pub(crate) fn cancel(run: &Run) -> Result<String, Problem> {
    run.cancel().map_err(|ended| Problem::new(Kind::RunEnded, ended.to_string()))?;
    Ok(resource::state(run))
}

fn unfit_for_topic(site: &Site, method: &str, name: &TopicName) -> Problem {
    match site.hub.topic(name).is_some() || site.publishing.may_create(name).is_some() {
        true => not_allowed(method, site.publishing.methods(name)),
        false => unknown_topic(name.as_str()),
    }
}
