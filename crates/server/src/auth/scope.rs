//! Scope: permissions, and the collections that they are for. What tokens and grants of issuers have in common.

use super::verb::Verb;

/// Permissions on some collections.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Exact names, prefixes that end in `*`, or `*`.
    pub collections: &'a [String],
    /// What may be done there.
    pub verbs: &'a [Verb],
}

impl Scope<'_> {
    /// Whether its collections include that name.
    pub fn covers(self, collection: &str) -> bool {
        self.collections.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => collection.starts_with(prefix),
            None => collection == pattern,
        })
    }

    /// Whether it has `verb` on that collection.
    pub fn allows(self, verb: Verb, collection: &str) -> bool {
        let has = self.verbs.contains(&verb) || self.verbs.contains(&Verb::Admin);
        has && self.covers(collection)
    }

    /// Whether it has the metrics: the verb, or admin on every collection.
    pub fn allows_metrics(self) -> bool {
        self.verbs.contains(&Verb::Metrics) || self.is_operator()
    }

    /// Whether it has admin on every collection.
    pub fn is_operator(self) -> bool {
        let everywhere = self.collections.iter().any(|pattern| pattern == "*");
        everywhere && self.verbs.contains(&Verb::Admin)
    }
}

/// Whether that is a pattern, or one of databases behind a tenant's name and a slash.
pub fn is_tenant_pattern(pattern: &str) -> bool {
    match pattern.split_once('/') {
        None => is_pattern(pattern),
        Some((tenant, database)) => {
            is_pattern(tenant) && !tenant.contains('*') && is_pattern(database)
        }
    }
}

/// Whether that is a name, a prefix that ends in `*`, or `*`.
pub fn is_pattern(pattern: &str) -> bool {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !pattern.is_empty() && name.len() <= 128 && name.bytes().all(plain)
}
