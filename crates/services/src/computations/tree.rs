//! The document of a computation: a tree of actions, checked before anything is made from it.

use anemone_hub::run::RunRefusal;

use super::action::{Algorithm, Criterion, Distribution, Word};
use super::work::SortWork;
use crate::reader::{self, Checked, Node, quoted};

pub(super) const DOCUMENT_BYTES_MAX: usize = 64 << 10;
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
    pub(super) fn work(&self) -> Option<SortWork> {
        match self.kind {
            ActionKind::List { .. } => None,
            ActionKind::Sort { algorithm, criterion } => {
                Some(SortWork::new(algorithm, criterion, self.size))
            }
        }
    }
}

impl ActionTree {
    /// Reads a document.
    ///
    /// # Errors
    /// When it is not JSON, or does not fit: with the JSON Pointer of the place, and what is allowed there.
    pub(super) fn parse(document: &[u8]) -> Checked<Self> {
        if document.len() > DOCUMENT_BYTES_MAX {
            let bytes = document.len();
            let detail =
                format!("the document has {bytes} bytes, at most {DOCUMENT_BYTES_MAX} allowed");
            return Err(RunRefusal::Unprocessable { pointer: Some(String::new()), detail });
        }
        if document.is_empty() {
            return Err(RunRefusal::BadBody(format!(
                "the body is empty: send a document, such as {EXAMPLE}"
            )));
        }
        let document = reader::parse(document)?;
        let members = Node::root(&document).object(&["actions"])?;
        let places: Vec<_> = members.require("actions")?.items(1..=ACTIONS_MAX)?.collect();
        let written = places.iter().map(Written::read).collect::<Checked<Vec<_>>>()?;
        let parents = parents(&written, &places)?;
        let order = order(&written, &parents, &places)?;
        Self::build(written, &parents, &order, &places)
    }

    /// Gives each action the size of its list, parents first, and checks what depends on it.
    fn build(
        written: Vec<Written>,
        parents: &[Option<usize>],
        order: &[usize],
        places: &[Node<'_>],
    ) -> Checked<Self> {
        let mut sizes = vec![0; written.len()];
        let mut elements = 0;
        for at in order {
            let (action, place) = (&written[*at], &places[*at]);
            sizes[*at] = match (action.size, parents[*at]) {
                (Some(size), _) => size,
                (None, Some(parent)) => sizes[parent],
                (None, None) => {
                    return Err(
                        place.unfit("a sort needs \"after\": an action whose list it sorts")
                    );
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
                return Err(place.open_object()?.unfit("algorithm", detail));
            }
            elements += size;
            if elements > ELEMENTS_MAX {
                let detail = format!(
                    "with this action, the lists of all actions have {elements} elements, at most {ELEMENTS_MAX} allowed; each sort has a list of its own"
                );
                return Err(place.unfit(detail));
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

/// An action as the document has it.
struct Written {
    id: String,
    after: Option<String>,
    kind: ActionKind,
    size: Option<usize>,
}

impl Written {
    fn read(node: &Node<'_>) -> Checked<Self> {
        let is_list = node.open_object()?.word("do", &[("list", true), ("sort", false)])?;
        let (kind, size) = if is_list {
            let action = node.object(&["id", "do", "after", "size", "distribution", "seed"])?;
            let kind = ActionKind::List {
                distribution: action.word_or(
                    "distribution",
                    Distribution::Random,
                    Distribution::ALL,
                )?,
                seed: action.whole_or("seed", 1, 0..=SEED_MAX)?,
            };
            (kind, usize::try_from(action.whole("size", 1..=SIZE_MAX)?).ok())
        } else {
            let action = node.object(&["id", "do", "after", "algorithm", "criterion"])?;
            let kind = ActionKind::Sort {
                algorithm: action.word("algorithm", Algorithm::ALL)?,
                criterion: action.word_or("criterion", Criterion::Ascending, Criterion::ALL)?,
            };
            (kind, None)
        };
        let action = node.open_object()?;
        let after = action.get("after").map(|after| id(&after)).transpose()?;
        Ok(Self { id: id(&action.require("id")?)?, after, kind, size })
    }
}

fn parents(written: &[Written], places: &[Node<'_>]) -> Checked<Vec<Option<usize>>> {
    let find = |id: &str| written.iter().position(|action| action.id == id);
    let mut parents = Vec::with_capacity(written.len());
    for (at, action) in written.iter().enumerate() {
        if let Some(first) = find(&action.id).filter(|first| *first < at) {
            let detail = format!(
                "the id {:?} already belongs to {}",
                quoted(&action.id),
                places[first].pointer()
            );
            return Err(places[at].open_object()?.unfit("id", detail));
        }
        let parent = action.after.as_deref().map(|after| match find(after) {
            Some(parent) => Ok(parent),
            None => {
                let detail = format!("no action has the id {:?}", quoted(after));
                Err(places[at].open_object()?.unfit("after", detail))
            }
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
    places: &[Node<'_>],
) -> Checked<Vec<usize>> {
    let mut by_depth = Vec::with_capacity(parents.len());
    for (at, place) in places.iter().enumerate() {
        // A way to the root that is longer than there are actions goes round.
        let way = std::iter::successors(Some(at), |at| parents[*at]);
        let way: Vec<usize> = way.take(parents.len() + 1).collect();
        if way.len() > parents.len() {
            let round = way.iter().skip(1).position(|other| *other == at);
            let Some(length) = round else { continue }; // It only leads to a cycle, whose members tell it.
            let ids: Vec<String> =
                way[..=length].iter().map(|at| format!("{:?}", written[*at].id)).collect();
            let detail = format!("a cycle: each starts after the next, {}", ids.join(", "));
            return Err(place.open_object()?.unfit("after", detail));
        }
        if way.len() > DEPTH_MAX {
            let detail =
                format!("{} actions one after the other, at most {DEPTH_MAX} allowed", way.len());
            return Err(place.open_object()?.unfit("after", detail));
        }
        by_depth.push((way.len(), at));
    }
    by_depth.sort_unstable();
    Ok(by_depth.into_iter().map(|(_, at)| at).collect())
}

fn id(node: &Node<'_>) -> Checked<String> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    let fits = |id: &str| (1..=ID_CHARS_MAX).contains(&id.len()) && id.chars().all(is_plain);
    let id = node.any_text().ok().filter(|id| fits(id));
    id.map(str::to_owned).ok_or_else(|| {
        node.unfit(format!(
            "expected an id: 1 to {ID_CHARS_MAX} of the characters A-Z, a-z, 0-9, -, _ and ."
        ))
    })
}
