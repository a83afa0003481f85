//! Patterns: regular expressions of filters. They are of bounded size, and searching takes time in proportion to the text.

use regex_lite::{Regex, RegexBuilder};

use crate::error::{Error, Result};
use crate::records::value::shown;

/// Bytes that one takes.
const MOST: usize = 1 << 20;

/// A regular expression, looked for anywhere in a text.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// # Errors
    /// [`Error::Input`] for what is none, or too large; `operator` is the one that it was given to.
    pub fn new(text: &str, operator: &str) -> Result<Self> {
        let made = RegexBuilder::new(text).size_limit(MOST).build();
        made.map(Self).map_err(|error| {
            Error::Input(format!(
                "{operator} takes a regular expression, got {}: {error}.",
                shown(text)
            ))
        })
    }

    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}
