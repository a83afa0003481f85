//! Tables: the metadata of many rows by field, which tell at once which rows pass a filter.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use indexmap::IndexMap;

use crate::error::Result;
use crate::gathered::gathered;
use crate::records::filter::{Comparison, Filter, Operator, Part};
use crate::records::record;
use crate::records::value::{Kind, Value};

/// Fields that an explanation names.
const SHOWN: usize = 12;

/// One field: the values that there are, in ascending order, and by row which it is, 0 for none and else one more than its place.
#[derive(Debug)]
struct Column {
    places: Vec<u32>,
    values: Vec<Value>,
}

impl Column {
    fn rows_that_match(&self, comparison: &Comparison) -> Vec<bool> {
        if let Some(run) = comparison.run(&self.values) {
            let (first, count) = (run.start as u32 + 1, run.len() as u32);
            return self.places.iter().map(|place| place.wrapping_sub(first) < count).collect();
        }
        let mut truth = vec![comparison.matches(None)];
        if comparison.operator == Operator::Equal {
            truth.resize(1 + self.values.len(), comparison.negated);
            for place in comparison.operands.iter().flat_map(|one| self.values.binary_search(one)) {
                truth[1 + place] = !comparison.negated;
            }
        } else {
            truth.extend(self.values.iter().map(|value| comparison.matches(Some(value))));
        }
        self.places.iter().map(|place| truth[*place as usize]).collect()
    }

    fn nbytes(&self) -> usize {
        let text = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::List(items) => items.len() * size_of::<Value>(),
            _ => 0,
        };
        4 * self.places.len()
            + self.values.iter().map(|value| size_of::<Value>() + text(value)).sum::<usize>()
    }
}

/// The metadata of the rows of a segment.
#[derive(Debug)]
pub struct Table {
    rows: usize,
    columns: BTreeMap<String, Column>,
}

impl Table {
    /// Of the records of its rows.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where bytes are no record.
    pub fn new<'a>(records: impl ExactSizeIterator<Item = &'a [u8]>) -> Result<Self> {
        let mut made = TableBuilder::new(records.len());
        for (row, record) in records.enumerate() {
            made.set(row, record)?;
        }
        Ok(made.table())
    }

    /// About how much memory it takes.
    pub fn nbytes(&self) -> usize {
        self.columns.values().map(Column::nbytes).sum()
    }

    /// By row, whether its metadata passes: what [`Filter::matches`] says of each, but for documents, and for what it does not tell.
    pub fn matches(&self, filter: &Filter) -> Vec<bool> {
        self.part(&filter.root)
    }

    /// Whether it knows all that the filter asks of metadata: of what is within objects it knows nothing.
    pub fn tells(&self, filter: &Filter) -> bool {
        !filter.paths().into_iter().any(|path| self.may_hold(path))
    }

    /// Whether an object may hold what a name with dots names.
    fn may_hold(&self, path: &str) -> bool {
        path.match_indices('.').any(|(dot, _)| {
            let column = self.columns.get(&path[..dot]);
            column.is_some_and(|column| column.values.last() == Some(&Value::Object))
        })
    }

    fn part(&self, part: &Part) -> Vec<bool> {
        let join = |parts: &[Part], every: bool| {
            let mut found = vec![every; self.rows];
            for part in parts {
                let passed = self.part(part);
                found.iter_mut().zip(passed).for_each(|(row, passed)| {
                    *row = if every { *row && passed } else { *row || passed };
                });
            }
            found
        };
        match part {
            Part::All(parts) => join(parts, true),
            Part::Any(parts) => join(parts, false),
            Part::Not(part) => self.part(part).iter().map(|row| !row).collect(),
            Part::Comparison(one) => match self.columns.get(&one.field) {
                Some(column) => column.rows_that_match(one),
                None => vec![one.matches(None); self.rows],
            },
        }
    }
}

/// A field of a table that is being made.
struct Growing {
    places: Vec<u32>,
    known: HashMap<Value, u32>,
}

/// A table that takes in its rows one after the other and keeps nothing else of them.
pub struct TableBuilder {
    rows: usize,
    columns: IndexMap<String, Growing>,
}

impl TableBuilder {
    /// Of so many rows, which have no metadata yet.
    pub fn new(rows: usize) -> Self {
        TableBuilder { rows, columns: IndexMap::new() }
    }

    /// Takes in the record of a row that had none.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where bytes are no record.
    pub fn set(&mut self, row: usize, record: &[u8]) -> Result<()> {
        let mut next = 0;
        let metadata = record::metadata(record)?;
        for (name, json) in &metadata.0 {
            next = 1 + self.put(row, name, Value::read(json), next);
        }
        Ok(())
    }

    /// Where the field is. Records mostly have the same fields in the same order, so that it is looked for there first.
    fn put(&mut self, row: usize, name: &str, value: Value, likely: usize) -> usize {
        let there = self.columns.get_index(likely).is_some_and(|(known, _)| known == name);
        let at = match there {
            true => Some(likely),
            false => self.columns.get_index_of(name),
        };
        let at = at.unwrap_or_else(|| {
            let none = Growing { places: vec![0; self.rows], known: HashMap::new() };
            self.columns.insert_full(name.to_owned(), none).0
        });
        if let Some((_, Growing { places, known })) = self.columns.get_index_mut(at)
            && let Some(place) = places.get_mut(row)
        {
            let next = 1 + known.len() as u32;
            *place = *known.entry(value).or_insert(next);
        }
        at
    }

    /// The table of the rows that were taken in.
    pub fn table(self) -> Table {
        let column = |Growing { places, known }: Growing| {
            let mut known: Vec<(Value, u32)> = known.into_iter().collect();
            known.sort_unstable();
            let mut ranks = vec![0; 1 + known.len()];
            let ranked = (1..).zip(known).map(|(rank, (value, place))| {
                ranks[place as usize] = rank;
                value
            });
            let values = ranked.collect();
            Column { places: places.iter().map(|place| ranks[*place as usize]).collect(), values }
        };
        let columns = self.columns.into_iter().map(|(name, found)| (name, column(found)));
        Table { rows: self.rows, columns: gathered(columns) }
    }
}

/// What kinds of values the fields of rows have, which tells why no row passes a filter.
#[derive(Debug, Default)]
pub struct FieldKinds(BTreeMap<String, BTreeSet<Kind>>);

impl FieldKinds {
    /// Those of a segment's rows too.
    pub fn add(&mut self, table: &Table) {
        for (name, column) in &table.columns {
            let kinds = self.0.entry(name.clone()).or_default();
            kinds.extend(column.values.iter().map(Value::kind));
        }
    }

    /// Why no row passes, where a field is one that no row has, or holds values of other kinds; else nothing.
    pub fn why_none(&self, filter: &Filter) -> String {
        let mut comparisons = Vec::new();
        filter.root.comparisons(&mut comparisons);
        let mut faults: Vec<String> = Vec::new();
        for fault in comparisons.into_iter().filter_map(|one| self.fault(one)) {
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        faults.join("; ")
    }

    fn fault(&self, one: &Comparison) -> Option<String> {
        let asked: BTreeSet<Kind> = gathered(one.operands.iter().map(Value::kind));
        if one.operator == Operator::Exists || asked.iter().eq([&Kind::None]) {
            return None;
        }
        let Some(kinds) = self.0.get(&one.field) else {
            let objects = one.field.match_indices('.').any(|(dot, _)| {
                let kinds = self.0.get(&one.field[..dot]);
                kinds.is_some_and(|kinds| kinds.contains(&Kind::Object))
            });
            return (!objects).then(|| self.unknown(&one.field));
        };
        if one.operator == Operator::Contains {
            let looks = kinds.contains(&Kind::List) || kinds.contains(&Kind::Text);
            return (!looks).then(|| {
                format!(
                    "{:?} holds {}, and {} looks into lists and texts",
                    one.field,
                    listed(kinds),
                    one.written
                )
            });
        }
        let hint = if kinds.contains(&Kind::List) { "; $contains looks into lists" } else { "" };
        kinds.is_disjoint(&asked).then(|| {
            format!(
                "{:?} holds {}, and is compared with {}{hint}",
                one.field,
                listed(kinds),
                listed(&asked)
            )
        })
    }

    fn unknown(&self, field: &str) -> String {
        let names: Vec<String> =
            self.0.keys().take(SHOWN).map(|name| format!("{name:?}")).collect();
        let more = match self.0.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let known = match names.len() {
            0 => "no row has metadata".to_owned(),
            _ => format!("there are {}{more}", names.join(", ")),
        };
        format!("no row has a field {field:?}: {known}")
    }
}

fn listed(kinds: &BTreeSet<Kind>) -> String {
    match kinds.len() {
        0 => "nothing".to_owned(),
        _ => kinds.iter().map(Kind::to_string).collect::<Vec<_>>().join(" and "),
    }
}
