//! Filters on documents: what a text contains.

use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::records::pattern::Pattern;
use crate::records::record::Fields;
use crate::records::value::shown;

/// A checked `where_document`.
#[derive(Debug, Clone)]
pub enum DocumentFilter {
    All(Vec<DocumentFilter>),
    Any(Vec<DocumentFilter>),
    Contains { text: String, negated: bool },
    Matches { pattern: Pattern, negated: bool },
}

impl DocumentFilter {
    /// Of its JSON.
    pub fn read(json: &str) -> Result<Self> {
        let fields =
            serde_json::from_str::<Fields<'_>>(json).map(|fields| fields.0).unwrap_or_default();
        let (Some((operator, operand)), 1) = (fields.first(), fields.len()) else {
            return Error::input(format!(
                "where_document must be one of {{\"$contains\": \"…\"}}, {{\"$not_contains\": \"…\"}}, {{\"$regex\": \"…\"}}, \
                 {{\"$not_regex\": \"…\"}}, {{\"$and\": […]}}, {{\"$or\": […]}}, got {}.",
                shown(json)
            ));
        };
        match &**operator {
            "$and" | "$or" => {
                let parts =
                    serde_json::from_str::<Vec<&RawValue>>(operand.get()).unwrap_or_default();
                if parts.is_empty() {
                    return Error::input(format!(
                        "{operator} in where_document takes a list of filters that is not empty, got {}.",
                        shown(operand.get())
                    ));
                }
                let parts =
                    parts.iter().map(|part| Self::read(part.get())).collect::<Result<_>>()?;
                Ok(if operator == "$and" { Self::All(parts) } else { Self::Any(parts) })
            }
            "$contains" | "$not_contains" => match serde_json::from_str::<String>(operand.get()) {
                Ok(text) if !text.is_empty() => {
                    Ok(Self::Contains { text, negated: operator == "$not_contains" })
                }
                _ => Error::input(format!(
                    "{operator} in where_document takes a text that is not empty, got {}.",
                    shown(operand.get())
                )),
            },
            "$regex" | "$not_regex" => match serde_json::from_str::<String>(operand.get()) {
                Ok(text) => {
                    let pattern = Pattern::new(&text, operator)?;
                    Ok(Self::Matches { pattern, negated: operator == "$not_regex" })
                }
                Err(_) => Error::input(format!(
                    "{operator} in where_document takes a regular expression, as a text, got {}.",
                    shown(operand.get())
                )),
            },
            _ => Error::input(format!(
                "where_document has {operator:?}; known are $contains, $not_contains, $regex, $not_regex, $and and $or."
            )),
        }
    }

    /// Whether a document passes. One that is not there contains nothing.
    pub fn matches(&self, document: Option<&str>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(document)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(document)),
            Self::Contains { text, negated } => {
                document.is_some_and(|document| document.contains(text)) != *negated
            }
            Self::Matches { pattern, negated } => {
                document.is_some_and(|document| pattern.is_in(document)) != *negated
            }
        }
    }
}
