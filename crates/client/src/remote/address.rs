//! Where a server is and what a client shows it, a URL and a token, both refused where they could leak.

use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// Characters of a token at most, as of the server.
const MAX_TOKEN: usize = 16 << 10;

/// A bearer token. Its text is in the header of requests and nowhere else.
pub struct Token(Zeroizing<String>);
impl Token {
    /// # Errors
    /// [`Error::Input`] for what can't stand in a header; the message doesn't repeat it.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        if !(1..=MAX_TOKEN).contains(&text.len())
            || !text.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Error::input(
                "the token must be 1 to 16,384 visible ASCII characters without spaces, as `ciphervec token create` printed it \
                 or an identity provider signed it.",
            );
        }
        Ok(Token(Zeroizing::new(text.to_owned())))
    }

    /// What the header `Authorization` says.
    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", *self.0)
    }
}

/// Scheme, host and path without a slash at the end.
///
/// # Errors
/// [`Error::Input`], also on plain HTTP to another machine unless `insecure`.
pub fn base_url(given: &str, insecure: bool) -> Result<String> {
    let starts = |scheme: &str| {
        given.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let scheme = ["https://", "http://"].into_iter().find(|scheme| starts(scheme));
    let Some(scheme) = scheme else {
        return Error::input(format!(
            "the URL of a server starts with https:// (or http:// on this machine); got {given}."
        ));
    };
    let rest = &given[scheme.len()..];
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Error::input(
            "the URL holds a user or a password; take them out, and pass a token instead.",
        );
    }
    if authority.is_empty() || path.contains(['?', '#']) {
        return Error::input(format!(
            "a server's URL has a host and no \"?\" or \"#\"; got {scheme}{authority}…"
        ));
    }
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    if scheme == "http://" && !insecure && !is_loopback(&host.to_ascii_lowercase()) {
        return Error::input(format!(
            "{scheme}{authority} is plain HTTP to another machine: anybody in between reads the token and alters answers. Use https://, or \
             say that it is insecure where the network itself is trusted."
        ));
    }
    Ok(format!("{scheme}{}{}", authority.to_ascii_lowercase(), path.trim_end_matches('/')))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_tokens_are_held_to_what_they_may_be() {
        for (given, insecure, expected) in [
            ("https://search.example/", false, "https://search.example"),
            ("HTTPS://Search.Example:8443/a/b/", false, "https://search.example:8443/a/b"),
            ("http://127.0.0.1:8707", false, "http://127.0.0.1:8707"),
            ("http://[::1]:8707/", false, "http://[::1]:8707"),
            ("http://db.localhost", false, "http://db.localhost"),
            ("http://search.example", true, "http://search.example"),
        ] {
            assert_eq!(base_url(given, insecure).unwrap(), expected);
        }
        for given in [
            "",
            "ftp://x",
            "search.example",
            "https://",
            "https://a:b@x",
            "https://x?y",
            "https://x/#y",
            "http://search.example",
            "http://127.0.0.1.evil.example",
            "http://localhost.evil.example",
        ] {
            assert!(base_url(given, false).is_err(), "{given}");
        }
        for token in ["", " ", "a b", "a\nb", "ü", &"x".repeat(MAX_TOKEN + 1)] {
            let error = Token::new(token).err().unwrap().to_string();
            assert!(token.trim().is_empty() || !error.contains(token), "{error}");
        }
        assert!(Token::new(" cv1_secret\n").is_ok());
    }
}
