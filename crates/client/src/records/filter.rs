//! Filters: which rows a caller asks for, by their metadata and documents.
//!
//! The grammar: `{"lang": "en"}` or `{"lang": {"$eq": "en"}}`; `$ne $gt $gte $lt $lte $in $nin`; `$contains` and `$not_contains`
//! look into a list, or a text; `$regex` and `$not_regex` search a text by a regular expression; `$exists` takes true or false, `$not` a condition or a filter. Several fields in one object, or
//! `{"$and": […]}`, must all hold; `{"$or": […]}` needs one. A field that is not there fails every comparison but `$ne`, `$nin`
//! and `$not_contains`. Numbers compare with numbers, by all of their digits; texts with texts, by code point; booleans with
//! booleans. A name with dots that no field has looks into objects, but for filterable fields. In the JSON of a filter `1e999` stands for infinity.

use std::collections::HashSet;
use std::ops::Range;

use ciphervec_owner::protect::filter::{FilterTag, FilterTags};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::records::document::DocumentFilter;
use crate::records::pattern::Pattern;
use crate::records::record::{Fields, Record, value_at};
use crate::records::value::{Kind, Value, shown};

const OPERATORS: &str = "$eq $ne $gt $gte $lt $lte $in $nin $contains $not_contains $regex $not_regex \
     $exists $not";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Equal,
    Above,
    AtLeast,
    Below,
    AtMost,
    Contains,
    Matches,
    Exists,
}

/// One operator on one field.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub field: String,
    pub operator: Operator,
    /// Answers with the opposite: `$ne`, `$nin`, `$not_contains`.
    pub negated: bool,
    /// The values of `$in` and `$nin`, else a single one.
    pub operands: HashSet<Value>,
    /// What `$regex` searches for.
    pattern: Option<Pattern>,
    /// As the caller wrote it.
    pub written: &'static str,
}

impl Comparison {
    /// Whether a row passes that has this value, or has none.
    pub fn matches(&self, value: Option<&Value>) -> bool {
        let found = match (self.operator, value) {
            (Operator::Exists, _) => self.operands.contains(&Value::Boolean(value.is_some())),
            (_, None) => false,
            (Operator::Equal, Some(value)) => self.operands.contains(value),
            (Operator::Contains, Some(Value::List(items))) => {
                items.iter().any(|item| self.operands.contains(item))
            }
            (Operator::Contains, Some(Value::Text(text))) => self
                .operands
                .iter()
                .any(|one| matches!(one, Value::Text(part) if text.contains(part))),
            (Operator::Contains, Some(_)) => false,
            (Operator::Matches, Some(Value::Text(text))) => {
                self.pattern.as_ref().is_some_and(|pattern| pattern.is_in(text))
            }
            (Operator::Matches, Some(_)) => false,
            (_, Some(value)) => self.operands.iter().any(|bound| self.in_order(value, bound)),
        };
        found != self.negated
    }

    /// Which of values in ascending order match, where those that do follow one another.
    pub fn run(&self, values: &[Value]) -> Option<Range<usize>> {
        let bound = self.operands.iter().next().filter(|_| !self.negated)?;
        let below = || values.partition_point(|value| value < bound);
        let through = || values.partition_point(|value| value <= bound);
        let first = || values.partition_point(|value| value.kind() < bound.kind());
        let end = || values.partition_point(|value| value.kind() <= bound.kind());
        Some(match self.operator {
            Operator::Above => through()..end(),
            Operator::AtLeast => below()..end(),
            Operator::Below => first()..below(),
            Operator::AtMost => first()..through(),
            Operator::Equal | Operator::Contains | Operator::Matches | Operator::Exists => {
                return None;
            }
        })
    }

    fn in_order(&self, value: &Value, bound: &Value) -> bool {
        let order = match (value, bound) {
            (Value::Number(a), Value::Number(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            _ => return false,
        };
        match self.operator {
            Operator::Above => order.is_gt(),
            Operator::AtLeast => order.is_ge(),
            Operator::Below => order.is_lt(),
            Operator::AtMost => order.is_le(),
            Operator::Equal | Operator::Contains | Operator::Matches | Operator::Exists => false,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Part {
    All(Vec<Part>),
    Any(Vec<Part>),
    Not(Box<Part>),
    Comparison(Comparison),
}

impl Part {
    fn all(mut parts: Vec<Self>) -> Self {
        match (parts.len(), parts.pop()) {
            (1, Some(only)) => only,
            (_, last) => Self::All(parts.into_iter().chain(last).collect()),
        }
    }

    /// Fields in `literal` are looked for by their whole name.
    fn matches(&self, fields: &Fields<'_>, literal: &[String]) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(fields, literal)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(fields, literal)),
            Self::Not(part) => !part.matches(fields, literal),
            Self::Comparison(one) if literal.contains(&one.field) => {
                one.matches(fields.0.get(one.field.as_str()).map(|json| Value::read(json)).as_ref())
            }
            Self::Comparison(one) => one.matches(value_at(fields, &one.field).as_ref()),
        }
    }

    /// Every comparison, wherever it stands.
    pub fn comparisons<'a>(&'a self, found: &mut Vec<&'a Comparison>) {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                for part in parts {
                    part.comparisons(found);
                }
            }
            Self::Not(part) => part.comparisons(found),
            Self::Comparison(one) => found.push(one),
        }
    }
}

/// What tags tell of the rows of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Which rows may pass.
    pub rows: Vec<bool>,
    /// Whether no other rows fail: there is nothing left to test.
    pub exact: bool,
}

/// A checked filter on metadata, on documents, or on both.
#[derive(Clone, Debug)]
pub struct Filter {
    pub(crate) root: Part,
    document: Option<DocumentFilter>,
    filterable: Vec<String>,
    equalities: Vec<(String, Vec<u8>)>,
    complete: bool,
}

impl Filter {
    /// Of the JSON of `where`, and of `where_document`. The equality of the `filterable` fields is what a server may test by
    /// keyed tags.
    ///
    /// # Errors
    /// [`Error::Input`] that names the part which is not understood.
    pub fn new(
        metadata: Option<&str>,
        document: Option<&str>,
        filterable: &[String],
    ) -> Result<Self> {
        let root = metadata.map_or(Ok(Part::All(Vec::new())), read_filter)?;
        let document = document.map(DocumentFilter::read).transpose()?;
        let mut filter = Self {
            complete: document.is_none(),
            document,
            filterable: filterable.to_vec(),
            equalities: Vec::new(),
            root: Part::All(Vec::new()),
        };
        filter.complete &= filter.collect(&root);
        filter.root = root;
        Ok(filter)
    }

    /// Takes the equalities that every row which passes must satisfy; whether they are all of the part.
    fn collect(&mut self, part: &Part) -> bool {
        match part {
            Part::All(parts) => {
                let mut all = true;
                for one in parts {
                    all &= self.collect(one); // of every part, also after one that is not all
                }
                all
            }
            Part::Comparison(one)
                if one.written == "$eq" && self.filterable.contains(&one.field) =>
            {
                let values = one.operands.iter().filter_map(Value::canonical);
                self.equalities.extend(values.map(|value| (one.field.clone(), value)));
                true
            }
            _ => false,
        }
    }

    /// The fields and canonical values that must all be equal for a row to pass, of filterable fields.
    pub fn equalities(&self) -> &[(String, Vec<u8>)] {
        &self.equalities
    }

    /// Whether the equalities are the whole filter, so that no record needs to be opened.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Names of what objects hold if they hold it.
    pub(crate) fn paths(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.root.comparisons(&mut found);
        let names = found.into_iter().map(|one| one.field.as_str());
        names
            .filter(|name| name.contains('.') && !self.filterable.iter().any(|one| one == name))
            .collect()
    }

    /// Whether documents are tested too.
    pub fn has_document(&self) -> bool {
        self.document.is_some()
    }

    /// Whether a row with this record passes.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for other bytes than a record's.
    pub fn matches(&self, record: &[u8]) -> Result<bool> {
        let record = Record::read(record)?;
        let document = self.document.as_ref();
        Ok(self.root.matches(&record.metadata.unwrap_or_default(), &self.filterable)
            && document.is_none_or(|filter| filter.matches(record.document.as_deref())))
    }

    /// What the tags of a segment's rows tell, of which `tag` makes one from a field and a canonical value.
    pub fn bound(
        &self,
        rows: usize,
        tags: Option<&FilterTags>,
        tag: impl Fn(&str, &[u8]) -> FilterTag,
    ) -> Bound {
        let found = Tagged { rows, tags, tag, filterable: &self.filterable }.part(&self.root);
        Bound {
            exact: found.as_ref().is_some_and(|found| found.exact) && self.document.is_none(),
            rows: found.map_or_else(|| vec![true; rows], |found| found.rows),
        }
    }
}

/// A segment's tags.
struct Tagged<'a, F> {
    rows: usize,
    tags: Option<&'a FilterTags>,
    tag: F,
    filterable: &'a [String],
}

impl<F: Fn(&str, &[u8]) -> FilterTag> Tagged<'_, F> {
    /// Nothing where tags tell nothing.
    fn part(&self, part: &Part) -> Option<Bound> {
        match part {
            Part::Comparison(one) if self.tells_of(one) => {
                let mut rows = vec![false; self.rows];
                for value in one.operands.iter().filter_map(Value::canonical) {
                    let carried =
                        self.tags.map(|tags| tags.matches(&[(self.tag)(&one.field, &value)]));
                    rows.iter_mut()
                        .zip(carried.unwrap_or_default())
                        .for_each(|(row, tagged)| *row |= tagged);
                }
                rows.iter_mut().for_each(|row| *row ^= one.negated);
                Some(Bound { rows, exact: true })
            }
            Part::Comparison(_) => None,
            Part::Not(part) => {
                let inner = self.part(part).filter(|inner| inner.exact)?;
                Some(Bound { rows: inner.rows.iter().map(|row| !row).collect(), exact: true })
            }
            Part::All(parts) => {
                let found: Vec<_> = parts.iter().map(|part| self.part(part)).collect();
                let exact = found.iter().all(|one| one.as_ref().is_some_and(|one| one.exact));
                let rows = found.into_iter().flatten().map(|one| one.rows);
                let rows = rows.reduce(|a, b| a.iter().zip(b).map(|(a, b)| *a && b).collect())?;
                Some(Bound { rows, exact })
            }
            Part::Any(parts) => {
                let found: Vec<_> =
                    parts.iter().map(|part| self.part(part)).collect::<Option<_>>()?;
                let exact = found.iter().all(|one| one.exact);
                let rows = found.into_iter().map(|one| one.rows);
                let rows = rows.reduce(|a, b| a.iter().zip(b).map(|(a, b)| *a || b).collect())?;
                Some(Bound { rows, exact })
            }
        }
    }

    fn tells_of(&self, one: &Comparison) -> bool {
        one.operator == Operator::Equal && self.filterable.contains(&one.field)
    }
}

fn fields_of<'a>(json: &'a str) -> Option<Fields<'a>> {
    serde_json::from_str(json).ok()
}

fn read_filter(json: &str) -> Result<Part> {
    match fields_of(json) {
        Some(fields) if !fields.0.is_empty() => {
            let parts = fields.0.iter().map(|(name, condition)| read_condition(name, condition));
            Ok(Part::all(parts.collect::<Result<_>>()?))
        }
        _ => Error::input(format!(
            "where must be an object that is not empty, such as {{\"lang\": \"en\"}}, got {}.",
            shown(json)
        )),
    }
}

fn read_condition(name: &str, condition: &RawValue) -> Result<Part> {
    match name {
        "$and" | "$or" => {
            let parts = serde_json::from_str::<Vec<&RawValue>>(condition.get()).unwrap_or_default();
            if parts.is_empty() {
                return Error::input(format!(
                    "{name} takes a list of filters that is not empty, got {}.",
                    shown(condition.get())
                ));
            }
            let parts = parts.iter().map(|part| read_filter(part.get())).collect::<Result<_>>()?;
            Ok(if name == "$and" { Part::All(parts) } else { Part::Any(parts) })
        }
        "$not" => Ok(Part::Not(Box::new(read_filter(condition.get())?))),
        _ if name.is_empty() || name.starts_with('$') => Error::input(format!(
            "where has {name:?} where a field name, $and, $or or $not is expected."
        )),
        _ => read_comparisons(name, condition),
    }
}

fn read_comparisons(field: &str, condition: &RawValue) -> Result<Part> {
    let Some(operators) = fields_of(condition.get()) else {
        return read_comparison(field, "$eq", condition);
    };
    if operators.0.is_empty() {
        return Error::input(format!(
            "the condition on {field:?} is empty; give a value or an operator such as $eq."
        ));
    }
    let parts =
        operators.0.iter().map(|(operator, operand)| read_comparison(field, operator, operand));
    Ok(Part::all(parts.collect::<Result<_>>()?))
}

fn read_comparison(field: &str, operator: &str, operand: &RawValue) -> Result<Part> {
    let (of, negated, written) = match operator {
        "$not" => return Ok(Part::Not(Box::new(read_comparisons(field, operand)?))),
        "$eq" => (Operator::Equal, false, "$eq"),
        "$ne" => (Operator::Equal, true, "$ne"),
        "$in" => (Operator::Equal, false, "$in"),
        "$nin" => (Operator::Equal, true, "$nin"),
        "$gt" => (Operator::Above, false, "$gt"),
        "$gte" => (Operator::AtLeast, false, "$gte"),
        "$lt" => (Operator::Below, false, "$lt"),
        "$lte" => (Operator::AtMost, false, "$lte"),
        "$contains" => (Operator::Contains, false, "$contains"),
        "$not_contains" => (Operator::Contains, true, "$not_contains"),
        "$regex" => (Operator::Matches, false, "$regex"),
        "$not_regex" => (Operator::Matches, true, "$not_regex"),
        "$exists" => (Operator::Exists, false, "$exists"),
        _ => {
            return Error::input(format!(
                "unknown operator {operator:?} on {field:?}; known are {OPERATORS}."
            ));
        }
    };
    let on = |expected: &str| {
        Error::input(format!("{operator} on {field:?} {expected}, got {}.", shown(operand.get())))
    };
    let operands = if matches!(written, "$in" | "$nin") {
        match Value::read(operand) {
            Value::List(values) => values,
            _ => return on("takes a list of values"),
        }
    } else {
        vec![Value::read(operand)]
    };
    for kind in operands.iter().map(Value::kind) {
        if matches!(kind, Kind::List | Kind::Object) {
            return on(
                "compares with texts, numbers, booleans or null; use $in for one of several values, $contains for a value within a \
                 list",
            );
        }
        match of {
            Operator::Equal | Operator::Contains => {}
            Operator::Matches if kind == Kind::Text => {}
            Operator::Matches => return on("takes a regular expression, as a text"),
            Operator::Exists if kind == Kind::Boolean => {}
            Operator::Exists => return on("takes true or false"),
            _ if matches!(kind, Kind::Number | Kind::Text) => {}
            _ => return on("compares with a number or a text"),
        }
    }
    let pattern = match (of, operands.first()) {
        (Operator::Matches, Some(Value::Text(text))) => Some(Pattern::new(text, operator)?),
        _ => None,
    };
    let operands = operands.into_iter().collect();
    Ok(Part::Comparison(Comparison {
        field: field.to_owned(),
        operator: of,
        negated,
        operands,
        pattern,
        written,
    }))
}
