//! Claims: what a signed token says. Before its signature is checked only the issuer is read, to know whose key to
//! check it by.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Claims that are texts of words (RFC 8693, section 4.2). Others may be what a user calls himself.
const WORDS: [&str; 2] = ["scope", "scp"];

/// Whom a token claims to be from.
pub fn issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Claimed {
        iss: String,
    }
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    Some(serde_json::from_slice::<Claimed>(&payload).ok()?.iss)
}

/// Whether a claim is `wanted`, a list that has it, or one of [`WORDS`] that has it. A name that is
/// no claim is a path of names with dots between, as `realm_access.roles`.
pub fn has(claims: &Map<String, Value>, name: &str, wanted: &str) -> bool {
    let value = claims.get(name).or_else(|| {
        let mut parts = name.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.as_object()?.get(part))
    });
    match value {
        Some(Value::String(text)) => {
            let words = WORDS.contains(&name);
            text == wanted || (words && text.split(' ').any(|word| word == wanted))
        }
        Some(Value::Array(values)) => values.iter().any(|value| value.as_str() == Some(wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn claims_are_texts_lists_words_and_paths() {
        let claims = json!({
            "sub": "ann", "name": "Eve operators", "groups": ["search", 7], "scope": "openid books.read", "a.b": "flat",
            "realm_access": {"roles": ["librarian"]}, "n": 7, "deep": {"roles": {"x": "y"}},
        });
        let claims = claims.as_object().unwrap();
        for (name, wanted) in [
            ("sub", "ann"),
            ("groups", "search"),
            ("scope", "books.read"),
            ("scope", "openid books.read"),
            ("a.b", "flat"),
            ("realm_access.roles", "librarian"),
            ("deep.roles.x", "y"),
        ] {
            assert!(has(claims, name, wanted), "{name} {wanted}");
        }
        for (name, wanted) in [
            ("sub", "an"),
            ("name", "operators"),
            ("groups", "searc"),
            ("groups", "7"),
            ("scope", "books"),
            ("n", "7"),
            ("realm_access", "librarian"),
            ("deep.roles", "x"),
            ("deep.roles.x.y", "y"),
            ("", ""),
            ("none", ""),
        ] {
            assert!(!has(claims, name, wanted), "{name} {wanted}");
        }
    }
}
