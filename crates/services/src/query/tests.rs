use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Field, Fields, Schema};

fn schema() -> Schema {
    Schema::new("Thing")
        .field(Field::text("word", 0..=9))
        .field(Field::number("size", -1e300..=1e300))
        .field(Field::boolean("big"))
        .field(Field::any("notes"))
}

fn parse(query: &str) -> Result<Query, QueryError> {
    Query::parse(Some(query), &schema())
}

fn record(value: Value) -> Fields {
    value.as_object().unwrap().clone()
}

fn things() -> Vec<Arc<Fields>> {
    [
        json!({"id": "1", "word": "b", "size": 10, "big": true}),
        json!({"id": "2", "word": "a", "size": 9.5, "big": false}),
        json!({"id": "3", "word": "ä", "size": -3}),
        json!({"id": "4", "size": 10.0, "big": true}),
        json!({"id": "5", "word": "b"}),
    ]
    .map(|thing| Arc::new(record(thing)))
    .into()
}

/// The ids that a query finds, in their order.
fn found(query: &str) -> String {
    let (things, query) = (things(), parse(query).unwrap());
    let matching = things.iter().filter(|thing| query.filter.matches(thing)).collect();
    let page = query.page(matching);
    page.data.iter().map(|thing| thing["id"].as_str().unwrap()).collect()
}

#[test]
fn each_operator_finds_what_it_finds_in_feathers() {
    for (query, ids) in [
        ("", "12345"),
        ("word=b", "15"),
        ("word[$ne]=b", "234"),
        ("size=10", "14"),
        ("size[$lt]=10", "23"),
        ("size[$lte]=10", "1234"),
        ("size[$gt]=9.5", "14"),
        ("size[$gte]=9.5", "124"),
        ("size[$gt]=9&size[$lt]=1e1", "2"),
        ("word[$gt]=a", "135"),
        ("big=true", "14"),
        ("big[$ne]=true", "235"),
        ("word[$in][]=a&word[$in][]=b", "125"),
        ("word[$in][0]=a&word[$in][1]=b", "125"),
        ("word[$nin][]=a&word[$nin][]=b", "34"),
        ("word[$nin][]=a&word[$ne]=b", "34"),
        ("$or[0][word]=a&$or[1][size][$gt]=9.9", "124"),
        ("$or[0][word]=b&$or[0][size]=10&$or[1][word]=a", "12"),
        ("$or[0][$or][0][word]=a&$or[0][$or][1][word]=b&big=true", "1"),
        ("id[$in][]=5&id[$in][]=3", "35"),
        ("%24or%5B0%5D%5Bword%5D=%C3%A4", "3"),
        ("$sort[size]=1", "53214"),
        ("$sort[size]=-1", "14235"),
        ("$sort[word]=1&$sort[size]=-1", "42153"),
        ("$limit=2", "12"),
        ("$limit=0", ""),
        ("$skip=3", "45"),
        ("$skip=9", ""),
        ("$limit=2&$skip=1&$sort[word]=-1", "15"),
    ] {
        assert_eq!(found(query), ids, "{query}");
    }
}

#[test]
fn select_gives_these_fields_and_the_id() {
    let (things, query) = (things(), parse("$select[]=big&$select[]=word&$limit=1").unwrap());
    let page = query.page(things.iter().collect());
    assert_eq!(page.total, 5);
    assert_eq!(page.data, [record(json!({"id": "1", "word": "b", "big": true})).into()]);
}

#[test]
fn a_page_ends_before_it_has_too_many_bytes_but_has_at_least_one_record() {
    let big = |bytes: usize| Arc::new(record(json!({"id": "1", "word": "x".repeat(bytes)})));
    let (half, whole) = (big(Query::BYTES_MAX / 2), big(2 * Query::BYTES_MAX));
    let sizes = |records: &[&Arc<Fields>]| Query::default().page(records.to_vec()).data.len();
    assert_eq!(sizes(&[&whole, &half]), 1);
    assert_eq!(sizes(&[&half, &half]), 1);
    assert_eq!(sizes(&[&half, &big(9), &half, &big(9)]), 2);
}

#[test]
fn what_is_not_in_the_table_is_refused_by_name() {
    for (query, words) in [
        ("$foo=1", "$foo is not a parameter"),
        ("$limit[]=1", "$limit[] is not a parameter"),
        ("$and[0][word]=a", "$and[0][word] is not"),
        ("word[$regex]=a", "word[$regex] is not"),
        ("word[$in]=a", "word[$in] is not"),
        ("word[$in][x]=a", "word[$in][x] is not"),
        ("word[$in]=a", "word[$in] is not"),
        ("word[=a", "word[ is not"),
        ("$or[0]=a", "$or[0] is not"),
        ("$or[][word]=a", "$or[][word] is not"),
        ("$or[0][$limit]=1", "$or[0][$limit] is not"),
        ("=1", " is not a parameter"),
        ("word=a&word=b", "word is given twice"),
        ("word=a&word[$ne]=%zz", "two hexadecimal digits must follow each % in a query"),
        ("word=%4", "not \"word=%4\""),
        ("wor%ff=a", "not \"wor%ff=a\""),
        ("$limit=1&$limit=1", "$limit is given twice"),
        ("word[$in][0]=a&word[$in][0]=b", "word[$in][0] is given twice"),
        ("$limit=1001", "$limit must be a whole number of 0 to 1000, not \"1001\""),
        ("$limit=-1", "must be a whole number"),
        ("$limit=+1", "must be a whole number"),
        ("$limit=", "must be a whole number"),
        ("$skip=1.5", "$skip must be a whole number"),
        ("$sort[word]=2", "$sort[word] must be 1 or -1"),
        ("size=abc", "size must be a number, not \"abc\""),
        ("size[$gt]= 1", "size[$gt] must be a number"),
        ("size=NaN", "size must be a number"),
        ("size=1e999", "size must be a number"),
        ("big=1", "big must be true or false"),
    ] {
        let error = parse(query).unwrap_err();
        assert!(!matches!(error, QueryError::UnknownField(_)), "{query}: {error}");
        assert!(
            error.to_string().starts_with(words) || error.to_string().contains(words),
            "{query}: {error}"
        );
    }
}

#[test]
fn what_is_not_a_field_to_compare_is_another_error() {
    for query in [
        "colour=red",
        "colour[$gt]=1",
        "notes=1",
        "$sort[colour]=1",
        "$sort[notes]=1",
        "$select[]=colour",
        "word[inner]=a",
        "$or[0][colour]=a",
        "Word=a",
    ] {
        let error = parse(query).unwrap_err();
        assert!(matches!(error, QueryError::UnknownField(_)), "{query}: {error}");
    }
}

#[test]
fn a_query_has_bounds() {
    let many = |count: usize, part: &dyn Fn(usize) -> String| {
        (0..count).map(part).collect::<Vec<_>>().join("&")
    };
    let or = |count| many(count, &|number| format!("$or[{number}][word]=a"));
    assert!(parse(&or(Query::CONDITIONS_MAX)).is_ok());
    let too_many = |what, most| Err(QueryError::TooMany { what, most });
    assert_eq!(parse(&or(Query::CONDITIONS_MAX + 1)), too_many("conditions", 32));
    let values = |count| many(count, &|_| "word[$in][]=a".to_owned());
    assert!(parse(&values(Query::VALUES_MAX)).is_ok());
    assert_eq!(parse(&values(Query::VALUES_MAX + 1)), too_many("values in $in and $nin", 100));
    assert!(parse("$or[0][$or][0][word]=a").is_ok());
    assert_eq!(parse("$or[0][$or][0][$or][0][word]=a"), too_many("levels of $or", 2));
    let fields = |count| many(count, &|_| "$select[]=word".to_owned());
    assert!(parse(&fields(Query::SELECT_MAX)).is_ok());
    assert_eq!(parse(&fields(Query::SELECT_MAX + 1)), too_many("fields to select", 32));
    let five = ["id", "word", "size", "big", "more"].map(|name| Field::text(name, 0..=9));
    let five = five.into_iter().fold(Schema::new("Five"), Schema::field);
    let sort = |names: &[&str]| {
        let query =
            names.iter().map(|name| format!("$sort[{name}]=1")).collect::<Vec<_>>().join("&");
        Query::parse(Some(&query), &five)
    };
    assert!(sort(&["id", "word", "size", "big"]).is_ok());
    assert_eq!(sort(&["id", "word", "size", "big", "more"]), too_many("fields to sort by", 4));
}

#[test]
fn numbers_have_one_order_also_beyond_the_integers_of_a_float() {
    let numbers =
        ["-1e19", "-1.5", "-1", "0.5", "1", "1.5", "9007199254740992", "9007199254740993", "1e300"];
    for (place, one) in numbers.iter().enumerate() {
        let thing = record(serde_json::from_str(&format!("{{\"size\":{one}}}")).unwrap());
        for (other_place, other) in numbers.iter().enumerate() {
            let matches =
                |way: &str| parse(&format!("size{way}={other}")).unwrap().filter.matches(&thing);
            assert_eq!(matches("[$lt]"), place < other_place, "{one} < {other}");
            assert_eq!(matches(""), place == other_place, "{one} = {other}");
            assert_eq!(matches("[$gte]"), place >= other_place, "{one} >= {other}");
        }
    }
}

/// A condition as its parameter, and what it means, said in another way.
#[derive(Clone, Debug)]
struct Naive {
    field: &'static str,
    operator: &'static str,
    values: Vec<i64>,
}

impl Naive {
    /// Words stand for numbers, so that one naive comparison does for both.
    fn text(&self, value: i64) -> String {
        if self.field == "word" {
            ((b'a' + value as u8) as char).to_string()
        } else {
            value.to_string()
        }
    }

    fn parameters(&self, before: &str) -> Vec<String> {
        let name = if before.is_empty() {
            self.field.to_owned()
        } else {
            format!("{before}[{}]", self.field)
        };
        let parameter = |value: &i64| format!("{name}{}={}", self.operator, self.text(*value));
        self.values.iter().map(parameter).collect()
    }

    fn holds(&self, word: Option<i64>, size: Option<i64>) -> bool {
        let own = if self.field == "word" { word } else { size };
        let first = self.values[0];
        match self.operator {
            "" => own == Some(first),
            "[$ne]" => own != Some(first),
            "[$lt]" => own.is_some_and(|own| own < first),
            "[$lte]" => own.is_some_and(|own| own <= first),
            "[$gt]" => own.is_some_and(|own| own > first),
            "[$gte]" => own.is_some_and(|own| own >= first),
            "[$in][]" => own.is_some_and(|own| self.values.contains(&own)),
            _ => !own.is_some_and(|own| self.values.contains(&own)),
        }
    }
}

fn naive() -> impl Strategy<Value = Naive> {
    let field = prop::sample::select(vec!["word", "size"]);
    let operators = vec!["", "[$ne]", "[$lt]", "[$lte]", "[$gt]", "[$gte]", "[$in][]", "[$nin][]"];
    let values = prop::collection::vec(0_i64..5, 1..4);
    (field, prop::sample::select(operators), values).prop_map(|(field, operator, mut values)| {
        if !operator.ends_with("[]") {
            values.truncate(1);
        }
        Naive { field, operator, values }
    })
}

proptest! {
    /// A loop over all records that looks at each condition finds the same, in the same order.
    #[test]
    fn a_query_finds_what_a_naive_evaluator_finds(
        records in prop::collection::vec((prop::option::of(0_i64..5), prop::option::of(0_i64..5)), 0..20),
        all in prop::collection::vec(naive(), 0..2),
        any in prop::collection::vec(naive(), 0..3),
        descending: bool,
        limit in 0_usize..25,
        skip in 0_usize..5,
    ) {
        let mut parameters: Vec<String> = all.iter().flat_map(|one| one.parameters("")).collect();
        for (number, one) in any.iter().enumerate() {
            parameters.extend(one.parameters(&format!("$or[{number}]")));
        }
        parameters.push(format!("$sort[size]={}", if descending { "-1" } else { "1" }));
        parameters.push(format!("$limit={limit}&$skip={skip}"));
        let query = parse(&parameters.join("&")).unwrap();
        let word = |value: i64| ((b'a' + value as u8) as char).to_string();
        let fields = |(number, (of_word, size)): (usize, &(Option<i64>, Option<i64>))| {
            let mut fields = record(json!({"id": number.to_string()}));
            fields.extend(of_word.map(|value| ("word".to_owned(), word(value).into())));
            fields.extend(size.map(|size| ("size".to_owned(), size.into())));
            Arc::new(fields)
        };
        let things: Vec<Arc<Fields>> = records.iter().enumerate().map(fields).collect();
        let matching = things.iter().filter(|thing| query.filter.matches(thing)).collect();
        let page = query.page(matching);

        let is_found = |(word, size): &(Option<i64>, Option<i64>)| {
            all.iter().all(|one| one.holds(*word, *size))
                && (any.is_empty() || any.iter().any(|one| one.holds(*word, *size)))
        };
        let mut expected: Vec<usize> = (0..records.len()).filter(|number| is_found(&records[*number])).collect();
        prop_assert_eq!(page.total, expected.len() as u64);
        let key = |number: &usize| records[*number].1.unwrap_or(-1);
        expected.sort_by_key(|number| if descending { -key(number) } else { key(number) });
        let expected: Vec<String> = expected.iter().skip(skip).take(limit).map(usize::to_string).collect();
        let ids: Vec<&str> = page.data.iter().map(|thing| thing["id"].as_str().unwrap()).collect();
        prop_assert_eq!(ids, expected);
    }

    #[test]
    fn no_query_makes_the_parser_panic(query in ".{0,60}", part in "[a-z$\\[\\]0-9=&%.]{0,40}") {
        let _ = (parse(&query), parse(&part), parse(&format!("$or{part}&{part}")));
    }
}
