//! Access rule: an endpoint's need and a token's entry enter, yes or no leaves. Server side.

use super::tokens::TokenEntry;
use super::verb::Verb;
use ciphervec::search::SessionStore;
use std::sync::Arc;

/// What an endpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Public,
    /// Any valid token; the handler shows what that one may see.
    Token,
    /// The verb metrics, or admin everywhere.
    Metrics,
    /// Admin on every collection.
    Operator,
    /// One of these verbs on the collection in the path.
    Collection(&'static [Verb]),
    /// One of these verbs on the program in the path.
    Program(&'static [Verb]),
}

impl Access {
    /// The verb that an audit line names.
    pub fn verb(self) -> &'static str {
        match self {
            Access::Public | Access::Token => "-",
            Access::Metrics => Verb::Metrics.as_str(),
            Access::Operator => Verb::Admin.as_str(),
            Access::Collection(verbs) | Access::Program(verbs) => {
                verbs.first().map_or("-", |verb| verb.as_str())
            }
        }
    }
}

/// Who sent a request; without a token file anyone, who may do everything.
#[derive(Clone)]
pub struct Principal(Option<Arc<TokenEntry>>);

impl Principal {
    /// Whoever that token was made for.
    pub fn of(entry: Arc<TokenEntry>) -> Self {
        Principal(Some(entry))
    }

    /// Anyone.
    pub fn anyone() -> Self {
        Principal(None)
    }

    /// The entry of the token, where one is asked for.
    pub fn token(&self) -> Option<&TokenEntry> {
        self.0.as_deref()
    }

    /// The token's id; `-` where none is asked for.
    pub fn id(&self) -> &str {
        self.token().map_or(SessionStore::ANYONE, |entry| &entry.id)
    }

    /// Whether it may do `verb` on that collection.
    pub fn allows(&self, verb: Verb, collection: &str) -> bool {
        self.token().is_none_or(|entry| entry.allows(verb, collection))
    }

    /// Whether it may do anything at all with that collection.
    pub fn knows(&self, collection: &str) -> bool {
        let verbs = [Verb::Read, Verb::Query, Verb::Append, Verb::Write, Verb::Admin];
        verbs.iter().any(|&verb| self.allows(verb, collection))
    }

    /// Whether it may do anything at all with that program.
    pub fn knows_program(&self, program: &str) -> bool {
        let verbs = [Verb::Run, Verb::Keep, Verb::Admin];
        verbs.iter().any(|&verb| self.allows(verb, program))
    }

    /// Whether it may use an endpoint that needs `access` on that collection or program.
    pub fn meets(&self, access: Access, collection: &str) -> bool {
        match access {
            Access::Public | Access::Token => true,
            Access::Metrics => self.token().is_none_or(TokenEntry::allows_metrics),
            Access::Operator => self.token().is_none_or(TokenEntry::is_operator),
            Access::Collection(verbs) | Access::Program(verbs) => {
                verbs.iter().any(|&verb| self.allows(verb, collection))
            }
        }
    }
}
