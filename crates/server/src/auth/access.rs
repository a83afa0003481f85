//! Access rules: whether a token may use an endpoint, by what the endpoint needs.

use super::issuers::Identity;
use super::limits::Limits;
use super::scope::Scope;
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

/// Who sent a request; anyone, who may do everything, where none has to say.
#[derive(Clone)]
pub struct Principal(Option<Sender>);

/// What vouches for a sender.
#[derive(Clone)]
pub enum Sender {
    /// A token of the token file.
    Token(Arc<TokenEntry>),
    /// A token that an issuer signed.
    Identity(Arc<Identity>),
}

impl Principal {
    /// Whoever that is.
    pub fn of(sender: Sender) -> Self {
        Principal(Some(sender))
    }

    /// Anyone.
    pub fn anyone() -> Self {
        Principal(None)
    }

    /// What vouches, where anything has to.
    pub fn sender(&self) -> Option<&Sender> {
        self.0.as_ref()
    }

    /// The id of the token or the identity; `-` where none is asked for.
    pub fn id(&self) -> &str {
        match &self.0 {
            None => SessionStore::ANYONE,
            Some(Sender::Token(entry)) => &entry.id,
            Some(Sender::Identity(identity)) => &identity.id,
        }
    }

    /// Whom an issuer named, as audit lines say it.
    pub fn subject(&self) -> Option<&str> {
        match &self.0 {
            Some(Sender::Identity(identity)) => Some(&identity.subject),
            _ => None,
        }
    }

    /// What it may use; everything where nobody has to say who he is.
    pub fn limits(&self) -> Limits {
        match &self.0 {
            None => Limits::default(),
            Some(Sender::Token(entry)) => entry.limits,
            Some(Sender::Identity(identity)) => identity.limits,
        }
    }

    /// Whether its scope has that name in it, whatever it may do there.
    pub fn covers(&self, collection: &str) -> bool {
        self.any(|scope| scope.covers(collection))
    }

    /// Whether one of its scopes is such; anyone has all.
    fn any(&self, is: impl Fn(Scope<'_>) -> bool) -> bool {
        match &self.0 {
            None => true,
            Some(Sender::Token(entry)) => is(entry.scope()),
            Some(Sender::Identity(identity)) => identity.scopes().any(is),
        }
    }

    /// Whether it may do `verb` on that collection.
    pub fn allows(&self, verb: Verb, collection: &str) -> bool {
        self.any(|scope| scope.allows(verb, collection))
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
            Access::Metrics => self.any(|scope| scope.allows_metrics()),
            Access::Operator => self.any(|scope| scope.is_operator()),
            Access::Collection(verbs) | Access::Program(verbs) => {
                verbs.iter().any(|&verb| self.allows(verb, collection))
            }
        }
    }
}
