//! A change to a topic, which the client may make and the topic accepts.

use anemone_hub::TopicName;

use crate::Problem;
use crate::publish::PublishPermit;
use crate::request::client::Client;
use crate::request::methods::{Methods, not_allowed};
use crate::request::names::unknown_topic;
use crate::site::Site;

/// A change to a topic that a client may make.
#[derive(Debug)]
pub(crate) enum Change {
    Publish(PublishPermit),
    Delete(PublishPermit),
}

impl Change {
    /// Returns the change that a method means, if the client may make it.
    pub(crate) fn of(
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
            Methods::Read | Methods::Publish => Err(unfit_for_topic(site, method, name)),
        }
    }
}

/// Returns the problem of a method that this topic does not allow.
fn unfit_for_topic(site: &Site, method: &str, name: &TopicName) -> Problem {
    match site.hub.topic(name).is_some() || site.publishing.may_create(name).is_some() {
        true => not_allowed(method, site.publishing.methods(name)),
        false => unknown_topic(name.as_str()),
    }
}
