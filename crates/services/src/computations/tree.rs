//! The document of a computation: a tree of actions, checked before anything is made from it.

use anemone_hub::run::RunRefusal;
use serde_json::{Map, Value};

use super::action::{Algorithm, Criterion, Distribution, Word};
use super::work::Work;

/// The most bytes of a document.
pub(super) const DOCUMENT_BYTES_MAX: usize = 64 << 10;
/// The most actions.
const ACTIONS_MAX: usize = 64;
/// The most actions that start one after the other.
const DEPTH_MAX: usize = 16;
/// The most elements of a list.
const SIZE_MAX: u64 = 100_000;
/// The most elements of a list for an algorithm whose time grows with the square of that: some seconds of work.
const QUADRATIC_SIZE_MAX: usize = 20_000;
/// The most elements of all lists together: each action holds one.
const ELEMENTS_MAX: usize = 200_000;
/// The largest integer that every JSON parser reads exactly.
const SEED_MAX: u64 = (1 << 53) - 1;
/// The most characters of an id.
const ID_CHARS_MAX: usize = 40;

/// A document for those who have sent none.
const EXAMPLE: &str = r#"{"actions":[{"id":"list","do":"list","size":100},{"id":"sort","do":"sort","after":"list","algorithm":"quick"}]}"#;

/// The actions of a computation, in the order of the document.
#[derive(Clone, Debug)]
pub(super) struct ActionTree {
    pub(super) actions: Vec<Action>,
}

#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) id: String,
    /// The action after which this one starts; `None` if it starts at once.
    pub(super) after: Option<usize>,
    pub(super) kind: ActionKind,
    /// The length of its list.
    pub(super) size: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ActionKind {
    /// Makes a list.
    List { distribution: Distribution, seed: u64 },
    /// Sorts a copy of the list of the action before it.
    Sort { algorithm: Algorithm, criterion: Criterion },
}

impl Action {
    /// Returns the work of a sort; a new list takes next to none.
    pub(super) fn work(&self) -> Option<Work> {
        match self.kind {
            ActionKind::List { .. } => None,
            ActionKind::Sort { algorithm, criterion } => {
                Some(Work::new(algorithm, criterion, self.size))
            }
        }
    }
}

impl ActionTree {
    /// Reads a document.
    ///
    /// # Errors
    /// When it is not JSON, or does not fit: with the JSON Pointer of the place, and what is allowed there.
    pub(super) fn parse(document: &[u8]) -> Result<Self, RunRefusal> {
        if document.len() > DOCUMENT_BYTES_MAX {
            let bytes = document.len();
            return Err(misfit(
                "",
                format!("the document has {bytes} bytes, at most {DOCUMENT_BYTES_MAX} allowed"),
            ));
        }
        if document.is_empty() {
            return Err(RunRefusal::BadBody(format!(
                "the body is empty: send a document, such as {EXAMPLE}"
            )));
        }
        let document: Value = serde_json::from_slice(document)
            .map_err(|error| RunRefusal::BadBody(format!("the document is not JSON: {error}")))?;
        let members = object(&document, "", &["actions"])?;
        let Some(Value::Array(actions)) = members.get("actions") else {
            return Err(misfit("/actions", "must be an array of actions"));
        };
        if !(1..=ACTIONS_MAX).contains(&actions.len()) {
            let count = actions.len();
            let detail = format!("{count} actions; 1 to {ACTIONS_MAX} are allowed");
            return Err(misfit("/actions", detail));
        }
        let places = 0..actions.len();
        let places: Vec<Place> = places.map(|at| Place(format!("/actions/{at}"))).collect();
        let written = actions.iter().zip(&places);
        let written = written.map(|(action, place)| Written::read(action, place));
        let written = written.collect::<Result<Vec<_>, _>>()?;
        let parents = parents(&written, &places)?;
        let order = order(&written, &parents, &places)?;
        Self::build(written, &parents, &order, &places)
    }

    /// Gives each action the size of its list, parents first, and checks what depends on it.
    fn build(
        written: Vec<Written>,
        parents: &[Option<usize>],
        order: &[usize],
        places: &[Place],
    ) -> Result<Self, RunRefusal> {
        let mut sizes = vec![0; written.len()];
        let mut elements = 0;
        for at in order {
            let (action, place) = (&written[*at], &places[*at]);
            sizes[*at] = match (action.size, parents[*at]) {
                (Some(size), _) => size,
                (None, Some(parent)) => sizes[parent],
                (None, None) => {
                    return Err(misfit(
                        &place.0,
                        "a sort needs \"after\": an action whose list it sorts",
                    ));
                }
            };
            let size = sizes[*at];
            if let ActionKind::Sort { algorithm, .. } = action.kind
                && algorithm.is_quadratic()
                && size > QUADRATIC_SIZE_MAX
            {
                let detail = format!(
                    "{size} elements; this algorithm takes at most {QUADRATIC_SIZE_MAX}, since its time grows with their square"
                );
                return Err(misfit(&place.member("algorithm"), detail));
            }
            elements += size;
            if elements > ELEMENTS_MAX {
                let detail = format!(
                    "with this action, the lists of all actions have {elements} elements, at most {ELEMENTS_MAX} allowed; each sort has a list of its own"
                );
                return Err(misfit(&place.0, detail));
            }
        }
        let actions = written.into_iter().zip(parents).zip(sizes);
        let actions = actions.map(|((written, after), size)| Action {
            id: written.id,
            after: *after,
            kind: written.kind,
            size,
        });
        Ok(Self { actions: actions.collect() })
    }
}

/// The JSON Pointer of an action.
struct Place(String);

impl Place {
    fn member(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }
}

/// An action as the document has it.
struct Written {
    id: String,
    after: Option<String>,
    kind: ActionKind,
    /// The size of a new list.
    size: Option<usize>,
}

impl Written {
    fn read(action: &Value, place: &Place) -> Result<Self, RunRefusal> {
        let Some(members) = action.as_object() else {
            return Err(misfit(&place.0, "must be an object: an action"));
        };
        let is_list = match members.get("do").and_then(Value::as_str) {
            Some("list") => true,
            Some("sort") => false,
            _ => return Err(misfit(&place.member("do"), "must be \"list\" or \"sort\"")),
        };
        if is_list {
            object(action, &place.0, &["id", "do", "after", "size", "distribution", "seed"])?;
        } else {
            object(action, &place.0, &["id", "do", "after", "algorithm", "criterion"])?;
        }
        let size =
            is_list.then(|| number(members, place, "size", 1..=SIZE_MAX, None)).transpose()?;
        let kind = if is_list {
            ActionKind::List {
                distribution: word(members, place, "distribution", Some(Distribution::Random))?,
                seed: number(members, place, "seed", 0..=SEED_MAX, Some(1))?,
            }
        } else {
            ActionKind::Sort {
                algorithm: word(members, place, "algorithm", None)?,
                criterion: word(members, place, "criterion", Some(Criterion::Ascending))?,
            }
        };
        let after = members.get("after").map(|after| id(after, &place.member("after")));
        Ok(Self {
            id: id(members.get("id").unwrap_or(&Value::Null), &place.member("id"))?,
            after: after.transpose()?,
            kind,
            size: size.and_then(|size| usize::try_from(size).ok()),
        })
    }
}

/// Finds the parent of each action.
fn parents(written: &[Written], places: &[Place]) -> Result<Vec<Option<usize>>, RunRefusal> {
    let find = |id: &str| written.iter().position(|action| action.id == id);
    let mut parents = Vec::with_capacity(written.len());
    for (at, action) in written.iter().enumerate() {
        if let Some(first) = find(&action.id).filter(|first| *first < at) {
            let detail =
                format!("the id {} already belongs to {}", quoted(&action.id), places[first].0);
            return Err(misfit(&places[at].member("id"), detail));
        }
        let parent = action.after.as_deref().map(|after| {
            let detail = || format!("no action has the id {}", quoted(after));
            find(after).ok_or_else(|| misfit(&places[at].member("after"), detail()))
        });
        parents.push(parent.transpose()?);
    }
    Ok(parents)
}

/// Returns the actions so that each parent comes before its children.
///
/// # Errors
/// For a cycle, and for a tree that is too deep.
fn order(
    written: &[Written],
    parents: &[Option<usize>],
    places: &[Place],
) -> Result<Vec<usize>, RunRefusal> {
    let mut by_depth = Vec::with_capacity(parents.len());
    for (at, place) in places.iter().enumerate() {
        // A way to the root that is longer than there are actions goes round.
        let way = std::iter::successors(Some(at), |at| parents[*at]);
        let way: Vec<usize> = way.take(parents.len() + 1).collect();
        if way.len() > parents.len() {
            let round = way.iter().skip(1).position(|other| *other == at);
            let Some(length) = round else { continue }; // It only leads to a cycle, whose members tell it.
            let ids: Vec<String> =
                way[..=length].iter().map(|at| quoted(&written[*at].id)).collect();
            let detail = format!("a cycle: each starts after the next, {}", ids.join(", "));
            return Err(misfit(&place.member("after"), detail));
        }
        if way.len() > DEPTH_MAX {
            let detail =
                format!("{} actions one after the other, at most {DEPTH_MAX} allowed", way.len());
            return Err(misfit(&place.member("after"), detail));
        }
        by_depth.push((way.len(), at));
    }
    by_depth.sort_unstable();
    Ok(by_depth.into_iter().map(|(_, at)| at).collect())
}

/// Returns the members of an object that has no others than these.
fn object<'a>(
    value: &'a Value,
    pointer: &str,
    allowed: &[&str],
) -> Result<&'a Map<String, Value>, RunRefusal> {
    let list = || allowed.join(", ");
    let Some(members) = value.as_object() else {
        return Err(misfit(pointer, format!("must be an object with {}", list())));
    };
    match members.keys().find(|name| !allowed.contains(&name.as_str())) {
        None => Ok(members),
        Some(other) => {
            let token = other.replace('~', "~0").replace('/', "~1");
            let detail = format!("{} is unknown here; allowed are {}", quoted(other), list());
            Err(misfit(&format!("{pointer}/{token}"), detail))
        }
    }
}

fn number(
    members: &Map<String, Value>,
    place: &Place,
    name: &str,
    allowed: std::ops::RangeInclusive<u64>,
    default: Option<u64>,
) -> Result<u64, RunRefusal> {
    let number = match members.get(name) {
        None => default,
        Some(value) => value.as_u64(),
    };
    number.filter(|number| allowed.contains(number)).ok_or_else(|| {
        let detail =
            format!("must be a whole number from {} to {}", allowed.start(), allowed.end());
        misfit(&place.member(name), detail)
    })
}

fn word<W: Word>(
    members: &Map<String, Value>,
    place: &Place,
    name: &str,
    default: Option<W>,
) -> Result<W, RunRefusal> {
    let word = match members.get(name) {
        None => default,
        Some(value) => value.as_str().and_then(W::parse),
    };
    word.ok_or_else(|| misfit(&place.member(name), format!("must be one of {}", W::list())))
}

fn id(value: &Value, pointer: &str) -> Result<String, RunRefusal> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    let id = value.as_str().filter(|id| (1..=ID_CHARS_MAX).contains(&id.len()));
    id.filter(|id| id.chars().all(is_plain)).map(str::to_owned).ok_or_else(|| {
        let detail = format!(
            "must be an id: 1 to {ID_CHARS_MAX} of the characters A-Z, a-z, 0-9, -, _ and ."
        );
        misfit(pointer, detail)
    })
}

/// Returns a name of the document as a problem may quote it.
fn quoted(name: &str) -> String {
    format!("{:?}", name.chars().take(ID_CHARS_MAX).collect::<String>())
}

fn misfit(pointer: &str, detail: impl Into<String>) -> RunRefusal {
    RunRefusal::Unprocessable { pointer: Some(pointer.to_owned()), detail: detail.into() }
}
