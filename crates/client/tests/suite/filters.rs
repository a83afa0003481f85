//! Filters against `vectors/client/filters.json`, which both clients run too.

use std::error::Error;

use ciphervec_client::record::merge;
use ciphervec_client::{Bound, Filter, Table};
use ciphervec_owner::protect::filter::{FilterTags, tag};
use serde_json::Value;

type Outcome = Result<(), Box<dyn Error>>;

const CASES: &str = include_str!("../../../../vectors/client/filters.json");

fn cases(part: &str) -> Result<Vec<Value>, Box<dyn Error>> {
    let all: Value = serde_json::from_str(CASES)?;
    Ok(all[part].as_array().ok_or("no such part")?.clone())
}

#[test]
fn a_filter_means_what_its_grammar_says_row_by_row_and_in_a_table() -> Outcome {
    for case in cases("metadata")? {
        let filter = Filter::new(Some(&case["where"].to_string()), None, &[])?;
        let record = merge(b"", Some(&case["row"].to_string()), None, &[])?;
        let passes = case["passes"].as_bool().ok_or("passes")?;
        assert_eq!(filter.matches(&record)?, passes, "{case}");
        let rows: [&[u8]; 3] = [&record, b"", &record];
        let table = Table::new(rows.into_iter())?;
        assert_eq!(table.matches(&filter), [passes, filter.matches(b"")?, passes], "{case}");
    }
    Ok(())
}

#[test]
fn a_table_of_all_kinds_of_values_answers_as_its_rows_do() -> Outcome {
    let numbers = "-1e400 -9223372036854775809 -9223372036854775808 -2.5 -1 0 -0.0 0.5 1 1.0 2 9007199254740993 1e22 1e400";
    let texts =
        ["", "1", "B", "a", "aa", "ü", "\u{ff5e}", "\u{1f600}"].map(|text| format!("{text:?}"));
    let kinds =
        ["null", "true", "false", "[]", "[1, \"a\"]", "{}", "{\"b\": 1}"].map(str::to_owned);
    let values: Vec<String> =
        numbers.split(' ').map(str::to_owned).chain(texts).chain(kinds).collect();
    let mut records = vec![Vec::new(), merge(b"", Some("{}"), None, &[])?];
    for value in values.iter().rev().chain(&values) {
        records.push(merge(b"", Some(&format!("{{\"x\": {value}}}")), None, &[])?);
    }
    let table = Table::new(records.iter().map(Vec::as_slice))?;
    let mut taken = 0;
    for operator in
        "$eq $ne $gt $gte $lt $lte $in $nin $contains $not_contains $regex $not_regex $exists"
            .split(' ')
    {
        for (one, other) in values.iter().zip(values.iter().cycle().skip(5)) {
            let list = matches!(operator, "$in" | "$nin");
            let operand = if list { format!("[{one}, {other}]") } else { one.clone() };
            let Ok(filter) =
                Filter::new(Some(&format!("{{\"x\": {{\"{operator}\": {operand}}}}}")), None, &[])
            else {
                continue;
            };
            let rows = records
                .iter()
                .map(|record| filter.matches(record))
                .collect::<Result<Vec<_>, _>>()?;
            assert_eq!(table.matches(&filter), rows, "{operator} {operand}");
            taken += 1;
        }
    }
    assert!(taken > 200, "{taken} filters were taken");
    Ok(())
}

#[test]
fn tags_never_leave_out_a_row_that_passes_and_decide_where_they_say_so() -> Outcome {
    let fields = ["x".to_owned(), "y".to_owned()];
    let made = |field: &str, value: &[u8]| tag(&[7; 32], field, value);
    for case in cases("metadata")? {
        let filter = Filter::new(Some(&case["where"].to_string()), None, &fields)?;
        let record = merge(b"", Some(&case["row"].to_string()), None, &[])?;
        let mut tags = FilterTags::new();
        tags.push(&ciphervec_client::record::tags(&record, &fields, made)?)?;
        tags.push(&[])?;
        let Bound { rows, exact } = filter.bound(2, Some(&tags), made);
        let passes = [filter.matches(&record)?, filter.matches(b"")?];
        if exact {
            assert_eq!(rows, passes, "{case}");
        }
        assert!(rows.iter().zip(passes).all(|(may, does)| *may || !does), "{case}");
        let carried = |one: &(String, Vec<u8>)| tags.row(0).contains(&made(&one.0, &one.1));
        assert!(!passes[0] || filter.equalities().iter().all(carried), "{case}");
    }
    Ok(())
}

#[test]
fn what_is_no_filter_is_refused_with_what_came() -> Outcome {
    for case in cases("refused")? {
        let error =
            Filter::new(Some(&case["where"].to_string()), None, &[]).err().ok_or("taken")?;
        let says = case["says"].as_str().ok_or("says")?;
        assert!(error.to_string().contains(says), "{error} without {says:?}");
    }
    for case in cases("documents_refused")? {
        let error = Filter::new(None, Some(&case["where_document"].to_string()), &[])
            .err()
            .ok_or("taken")?;
        let says = case["says"].as_str().ok_or("says")?;
        assert!(error.to_string().contains(says), "{error} without {says:?}");
    }
    Ok(())
}

#[test]
fn documents_are_tested_by_what_they_contain() -> Outcome {
    for case in cases("documents")? {
        let filter = Filter::new(None, Some(&case["where_document"].to_string()), &[])?;
        let record = merge(b"", None, case["document"].as_str(), &[])?;
        assert_eq!(Some(filter.matches(&record)?), case["passes"].as_bool(), "{case}");
        assert!(filter.has_document() && !filter.is_complete());
    }
    Ok(())
}

#[test]
fn values_that_stay_keep_their_text_and_their_place() -> Outcome {
    let record = br#"{"metadata":{"price":2.0,"zero":-0.0,"10":1,"2":12345678901234567890,"x":null},"document":"\u00fc"}"#;
    let merged = merge(record, Some(r#"{"2":[1.50],"team":"blue"}"#), None, &["x".to_owned()])?;
    assert_eq!(
        String::from_utf8(merged)?,
        r#"{"metadata":{"price":2.0,"zero":-0.0,"10":1,"2":[1.50],"team":"blue"},"document":"ü"}"#
    );
    assert_eq!(merge(b"", None, None, &[])?, b"");
    assert_eq!(merge(b"", Some("{}"), Some("a"), &[])?, br#"{"metadata":{},"document":"a"}"#);
    Ok(())
}

#[test]
fn what_is_no_record_is_corrupt() -> Outcome {
    let filter = Filter::new(Some(r#"{"a": 1}"#), None, &[])?;
    for bad in [
        &b"[]"[..],
        br#"{"a": 1}"#,
        br#"{"metadata": 1}"#,
        br#"{"document": {}}"#,
        b"{",
        b"null",
        br#"{"metadata": {}, "document": "x", "z": 0}"#,
        br#"{"metadata": {"a": }}"#,
        &[0xff],
    ] {
        let error = filter.matches(bad).err().ok_or("taken")?;
        assert!(error.to_string().contains("record"), "{error}");
        assert!(Table::new([bad].into_iter()).is_err());
    }
    Ok(())
}

#[test]
fn names_with_dots_look_into_objects_and_a_table_says_where_it_cannot_tell() -> Outcome {
    let rows = [
        r#"{"a":{"b":1,"c":{"d":"x"}},"e.f":2}"#,
        r#"{"a.b":2,"a":{"b":1}}"#,
        r#"{"a":{"b.c":{"d":3}},"a.b":{"c.d":4}}"#,
        r#"{"a":[{"b":1}],"e":{"f":null}}"#,
        r#"{"a":"b"}"#,
    ];
    let records =
        rows.iter().map(|row| merge(b"", Some(row), None, &[])).collect::<Result<Vec<_>, _>>()?;
    let table = Table::new(records.iter().map(Vec::as_slice))?;
    for (wanted, passing, tells) in [
        (r#"{"a.b":1}"#, [true, false, false, false, false], false),
        (r#"{"a.b":{"$gte":1}}"#, [true, true, false, false, false], false),
        (r#"{"a.c.d":{"$contains":"x"}}"#, [true, false, false, false, false], false),
        (r#"{"a.b.c.d":{"$gt":3}}"#, [false, false, true, false, false], false),
        (r#"{"a.b.c.d":3}"#, [false, false, false, false, false], false),
        (r#"{"a.b":{"$exists":false}}"#, [false, false, false, true, true], false),
        (r#"{"e.f":2}"#, [true, false, false, false, false], false),
        (r#"{"e.f":null}"#, [false, false, false, true, false], false),
        (r#"{"a":{"$regex":"^b$"}}"#, [false, false, false, false, true], true),
        (r#"{"z.y":{"$ne":1}}"#, [true, true, true, true, true], true),
    ] {
        let filter = Filter::new(Some(wanted), None, &[])?;
        for (record, passes) in records.iter().zip(passing) {
            assert_eq!(filter.matches(record)?, passes, "{wanted}");
        }
        assert_eq!(table.tells(&filter), tells, "{wanted}");
        if tells {
            assert_eq!(table.matches(&filter), passing, "{wanted}");
        }
    }
    // What tags are made of is the field of the whole name.
    let filter = Filter::new(Some(r#"{"a.b":1}"#), None, &["a.b".to_owned()])?;
    assert!(!filter.matches(&records[0])? && table.tells(&filter));
    assert_eq!(table.matches(&filter), [false; 5]);
    Ok(())
}

#[test]
fn regular_expressions_search_texts_and_wrong_ones_are_refused() -> Outcome {
    let record = merge(b"", Some(r#"{"x":"Größe 42","n":42}"#), Some("line one\nline two"), &[])?;
    for (wanted, passes) in [
        (r#"{"x":{"$regex":"^Gr..e \\d+$"}}"#, true),
        (r#"{"x":{"$regex":"(?i)gr"}}"#, true),
        (r#"{"x":{"$not_regex":"43"}}"#, true),
        (r#"{"x":{"$regex":"^42"}}"#, false),
        (r#"{"n":{"$regex":"42"}}"#, false),
        (r#"{"n":{"$not_regex":"42"}}"#, true),
        (r#"{"y":{"$regex":""}}"#, false),
        (r#"{"y":{"$not_regex":""}}"#, true),
    ] {
        assert_eq!(Filter::new(Some(wanted), None, &[])?.matches(&record)?, passes, "{wanted}");
    }
    for (wanted, passes) in [
        (r#"{"$regex":"(?m)^line two$"}"#, true),
        (r#"{"$regex":"^line two"}"#, false),
        (r#"{"$not_regex":"three"}"#, true),
    ] {
        assert_eq!(Filter::new(None, Some(wanted), &[])?.matches(&record)?, passes, "{wanted}");
    }
    // Time is in proportion to the text, whatever the expression.
    let long = merge(b"", Some(&format!("{{\"x\":\"{}\"}}", "a".repeat(10_000))), None, &[])?;
    assert!(!Filter::new(Some(r#"{"x":{"$regex":"^(a+)+b"}}"#), None, &[])?.matches(&long)?);
    for wrong in [
        r#"{"x":{"$regex":"("}}"#,
        r#"{"x":{"$regex":1}}"#,
        r#"{"x":{"$regex":"((a{99}){99}){99}"}}"#,
    ] {
        let error = Filter::new(Some(wrong), None, &[]).err().ok_or("taken")?;
        assert!(error.to_string().contains("regular expression"), "{error}");
    }
    assert!(Filter::new(None, Some(r#"{"$regex":"("}"#), &[]).is_err());
    Ok(())
}
