//! The line in which a long computation writes its result ("Runs" in `docs/PROTOCOL.md`).

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultObject<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// Returns the JSON of a result: that of `{"result":VALUE}`, an object with this member alone. `None` for every other line.
#[must_use]
pub fn result_of_line(line: &str) -> Option<&str> {
    // Most lines are partial results, and need no second parser.
    if !line.trim_start().starts_with('{') || !line.contains("result") {
        return None;
    }
    serde_json::from_str::<ResultObject<'_>>(line).ok().map(|object| object.result.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_with_a_result_alone_is_one_and_nothing_else() {
        for (line, result) in [
            (r#"{"result":42}"#, "42"),
            (r#" { "result" : null } "#, "null"),
            (r#"{"result":{"n": 1.50,"a":[]}}"#, r#"{"n": 1.50,"a":[]}"#),
            (r#"{"\u0072esult is":1}"#, ""),
            (r#"{"result":"{\"result\":1}"}"#, r#""{\"result\":1}""#),
        ] {
            assert_eq!(
                result_of_line(line),
                Some(result).filter(|found| !found.is_empty()),
                "{line}"
            );
        }
        for line in [
            "",
            "result",
            "{}",
            r#"{"result":}"#,
            r#"{"result":1,"n":2}"#,
            r#"{"result":1,"result":2}"#,
            r#"{"result":1} x"#,
            r#"[{"result":1}]"#,
            r#"{"a":{"result":1}}"#,
            r#"{"Result":1}"#,
            r#"{"result":NaN}"#,
            "result: 42",
        ] {
            assert_eq!(result_of_line(line), None, "{line}");
        }
    }
}
