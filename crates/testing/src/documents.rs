//! The documents of the repository, and what is in them: sentences, and blocks of code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A document: its path in the repository, and its text.
#[derive(Clone, Debug)]
pub struct Document {
    pub path: String,
    pub text: String,
}

/// The README, and the documents that go on where it ends.
const FRONT: [&str; 7] = [
    "README.md",
    "docs/TUTORIAL.md",
    "docs/RUNS.md",
    "docs/OPERATE.md",
    "docs/WIND.md",
    "docs/LAB.md",
    "docs/CLI.md",
];

// They are read when a test runs, so that a changed word builds no test anew.
static ALL: LazyLock<Vec<Document>> = LazyLock::new(|| {
    let read = |path: String| Document {
        text: fs::read_to_string(root().join(&path)).expect(&path),
        path,
    };
    paths().into_iter().map(read).collect()
});

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the names in a directory of the repository, in order.
fn names(directory: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(directory)).expect(directory);
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns the paths of all documents: those of the repository and of `docs`, and the README of each part that has one.
fn paths() -> Vec<String> {
    let below = |directory: &'static str| {
        names(directory).into_iter().map(move |name| format!("{directory}/{name}"))
    };
    let parts = ["clients/js", "conformance"].map(str::to_owned).into_iter().chain(below("crates"));
    let paths =
        names("").into_iter().chain(below("docs")).chain(parts.map(|part| part + "/README.md"));
    paths.filter(|path| path.ends_with(".md") && root().join(path).is_file()).collect()
}

/// The text of the documents that go on from each other, one after the other.
pub fn front() -> String {
    FRONT.map(text).concat()
}

/// Returns all documents.
pub fn all() -> impl Iterator<Item = &'static Document> {
    ALL.iter()
}

/// Returns the document at this path.
pub fn document(path: &str) -> &'static Document {
    all().find(|document| document.path == path).expect(path)
}

/// Returns the text of the document at this path.
pub fn text(path: &str) -> &'static str {
    &document(path).text
}

/// A block of code: the heading above it, its language if it is between fences, and its lines without indentation.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Block {
    pub heading: String,
    pub language: Option<String>,
    pub code: String,
}

impl Document {
    /// Returns the blocks of code, in order.
    pub fn blocks(&self) -> Vec<Block> {
        self.parts().into_iter().filter_map(Part::into_block).collect()
    }

    /// Returns the targets of all links and images.
    pub fn links(&self) -> Vec<String> {
        let prose = self.parts().into_iter().filter_map(Part::into_prose);
        let in_prose = |prose: String| {
            let targets =
                prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
            targets.map(str::to_owned).collect::<Vec<_>>()
        };
        prose.flat_map(in_prose).collect()
    }

    /// Returns the names by which links lead to headings, and to other places that have one.
    pub fn anchors(&self) -> BTreeSet<String> {
        let headings = self.parts().into_iter().filter_map(Part::into_heading);
        let named = self.text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        headings.map(|heading| anchor(&heading)).chain(named.map(str::to_owned)).collect()
    }

    /// Returns the text below the heading of this name, up to the next heading.
    pub fn below(&self, heading: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(&format!("# {heading}\n"))?;
        rest.split("\n#").next()
    }

    /// Returns the sentences of paragraphs, items of lists, and cells of tables. A piece of inline code is the word `Code`.
    pub fn sentences(&self) -> Vec<String> {
        let prose = self.parts().into_iter().filter_map(Part::into_prose);
        prose.flat_map(|prose| sentences(&plain(&prose))).collect()
    }

    fn parts(&self) -> Vec<Part> {
        let mut reading = Reading::default();
        for line in without(&self.text, "<!--", "-->").lines() {
            reading.line(line);
        }
        reading.end();
        reading.parts
    }
}

enum Part {
    Heading(String),
    Block(Block),
    Prose(String),
}

impl Part {
    fn into_heading(self) -> Option<String> {
        if let Self::Heading(heading) = self { Some(heading) } else { None }
    }

    fn into_block(self) -> Option<Block> {
        if let Self::Block(block) = self { Some(block) } else { None }
    }

    fn into_prose(self) -> Option<String> {
        if let Self::Prose(prose) = self { Some(prose) } else { None }
    }
}

/// The parts of a document that were read so far, and the one that its next line may go on with.
#[derive(Default)]
struct Reading {
    parts: Vec<Part>,
    heading: String,
    prose: String,
    block: Option<Block>,
    is_in_list: bool,
}

impl Reading {
    fn line(&mut self, line: &str) {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let was_fenced = self.is_fenced();
            self.end();
            if !was_fenced {
                self.begin_block(Some(language.to_owned()));
            }
        } else if let Some(block) = self.block.as_mut().filter(|block| block.language.is_some()) {
            block.code += line;
            block.code.push('\n');
        } else {
            self.unfenced(line);
        }
    }

    fn is_fenced(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.language.is_some())
    }

    fn begin_block(&mut self, language: Option<String>) {
        self.block = Some(Block { heading: self.heading.clone(), language, code: String::new() });
    }

    fn unfenced(&mut self, line: &str) {
        let text = line.trim();
        let indentation = line.len() - line.trim_start().len();
        if text.is_empty() {
            // A block goes on after an empty line, and a paragraph does not.
            match &mut self.block {
                Some(block) => block.code.push('\n'),
                None => self.end(),
            }
        } else if indentation >= 4 && self.prose.is_empty() && !self.is_in_list {
            if self.block.is_none() {
                self.begin_block(None);
            }
            if let Some(block) = &mut self.block {
                block.code += &line[4..];
                block.code.push('\n');
            }
        } else {
            self.prose(text, indentation);
        }
    }

    fn prose(&mut self, text: &str, indentation: usize) {
        let item = item(text);
        if self.block.is_some() || item.is_some() || text.starts_with(['#', '|']) {
            self.end();
        }
        if self.prose.is_empty() {
            self.is_in_list = item.is_some() || self.is_in_list && indentation > 0;
        }
        if let Some(row) = text.strip_prefix('|') {
            self.parts.extend(row.split('|').map(|cell| Part::Prose(cell.to_owned())));
        } else if text.starts_with('#') {
            text.trim_start_matches('#').trim().clone_into(&mut self.heading);
            self.parts.push(Part::Heading(self.heading.clone()));
        } else {
            self.prose += item.unwrap_or(text);
            self.prose.push(' ');
        }
    }

    /// Ends the part that the last line belongs to.
    fn end(&mut self) {
        if let Some(mut block) = self.block.take() {
            block.code.truncate(block.code.trim_end().len());
            self.parts.push(Part::Block(block));
        }
        if !self.prose.is_empty() {
            self.parts.push(Part::Prose(std::mem::take(&mut self.prose)));
        }
    }
}

/// Returns the name by which links lead to a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.to_lowercase().replace(' ', "-");
    heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

/// Returns the text of an item of a list, which this line begins. A longer number is one of a sentence.
fn item(line: &str) -> Option<&str> {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let numbered = (1..=2).contains(&digits).then(|| line[digits..].strip_prefix(". ")).flatten();
    line.strip_prefix("- ").or(numbered)
}

/// Returns a text without all that is between two marks, and without the marks.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut parts = text.split(begin);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(end).map_or(part, |(_, rest)| rest))
}

/// Returns prose with one word for each piece of inline code, and the words of links alone.
fn plain(prose: &str) -> String {
    let mut parts = prose.split('`');
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.enumerate().fold(first, |text, (at, part)| match at % 2 {
        0 => text + "Code",
        _ => text + part,
    });
    without(&without(&text, "](", ")"), "<", ">")
}

/// Divides a text after each `.`, `!` and `?` that a space and the beginning of a sentence follow.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in text.split_whitespace() {
        let begins = word.trim_start_matches(['(', '*', '"', '[', '!']);
        let begins = begins.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
        let ended = |last: &String| {
            last.trim_end_matches([')', '*', '"', ']', ' ']).ends_with(['.', '!', '?'])
        };
        if begins && sentences.last().is_some_and(ended) {
            sentences.push(String::new());
        }
        if let Some(last) = sentences.last_mut() {
            *last += word;
            last.push(' ');
        }
    }
    sentences
}

/// Returns the number of words in a sentence: what has a letter or a digit.
pub fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Title\n\nOne `a. B` here. Two\n[goes](x.md) on!\n\n    code one\n\n    code two\n\n- item\n  goes on\n\n  \
                        and on\n- other\n\n## Below\n| a | b |\n```js\nlet a;\n```\n<!-- no. Prose -->\nLast.\n";

    #[test]
    fn a_document_has_sentences_and_blocks() {
        let document = Document { path: "x.md".to_owned(), text: TEXT.to_owned() };
        let sentences: Vec<_> =
            document.sentences().iter().map(|said| said.trim().to_owned()).collect();
        let expected = [
            "One Code here.",
            "Two [goes on!",
            "item goes on",
            "and on",
            "other",
            "a",
            "b",
            "",
            "Last.",
        ];
        assert_eq!(sentences, expected);
        let blocks = document.blocks();
        assert_eq!(blocks[0].code, "code one\n\ncode two");
        assert_eq!((blocks[1].heading.as_str(), blocks[1].code.as_str()), ("Below", "let a;"));
        assert_eq!((blocks.len(), words("it is - 2 (a)")), (2, 4));
    }
}
