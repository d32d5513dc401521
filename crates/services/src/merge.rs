//! JSON merge patch (RFC 7396).

use serde_json::Value;

use crate::Fields;

/// Applies a patch: `null` removes a member, an object is merged, and any other value replaces.
pub(crate) fn merge(target: &mut Fields, patch: &Fields) {
    for (name, value) in patch {
        match value {
            Value::Null => drop(target.remove(name)),
            Value::Object(inner) => {
                let old = target.entry(name.as_str()).or_insert(Value::Null);
                if !old.is_object() {
                    *old = Value::Object(Fields::new());
                }
                if let Value::Object(old) = old {
                    merge(old, inner);
                }
            }
            value => drop(target.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc_give_its_results() {
        // RFC 7396 appendix A, those of objects
        for (target, patch, result) in [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
            (json!({"a":"b"}), json!({"a":null}), json!({})),
            (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
            (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
            (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
        ] {
            let mut merged = target.as_object().unwrap().clone();
            merge(&mut merged, patch.as_object().unwrap());
            assert_eq!(Value::Object(merged), result, "{target} and {patch}");
        }
    }
}
