//! The site of a page, as a browser sends it in `Origin`.

use std::net::IpAddr;

/// The site of a page as browsers send it: scheme, host, and a port that is not the scheme's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// As browsers send it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether its pages come from this machine.
    pub fn is_local(&self) -> bool {
        is_local(host_of(&self.0))
    }
}

/// `https://app.example`, `http://localhost:5173`, `chrome-extension://<id>`.
///
/// # Errors
/// What is expected instead.
pub fn origin(text: &str) -> Result<Origin, String> {
    let refused = |why: &str| {
        Err(format!(
            "{text:?} is no origin: {why}; write scheme, host and port as browsers do, like https://app.example"
        ))
    };
    if text == "*" {
        return refused("sites are named one by one");
    }
    let Some((scheme, rest)) = text.split_once("://") else { return refused("there is no scheme") };
    let letters = |text: &str, others: &[u8]| {
        !text.is_empty()
            && text.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || others.contains(&byte)
            })
    };
    if !letters(scheme, b"+-.") {
        return refused("a scheme has lower-case letters");
    }
    if rest.contains(['/', '?', '#', '@']) {
        return refused("it ends with the host or the port, without a slash");
    }
    let host = host_of(text);
    let port = rest.get(host.len()..).unwrap_or_default();
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if !literal.map_or_else(|| letters(host, b"-._"), |host| letters(host, b":")) {
        return refused("a host has lower-case letters; international names are written xn--…");
    }
    match (scheme, port.strip_prefix(':')) {
        (_, None) if port.is_empty() => {}
        ("https", Some("443")) | ("http", Some("80")) => {
            return refused("browsers leave out the scheme's own port");
        }
        (_, Some(digits)) if digits.parse::<u16>().is_ok_and(|port| port.to_string() == digits) => {
        }
        _ => return refused("the port is no number up to 65535"),
    }
    Ok(Origin(text.to_owned()))
}

fn host_of(origin: &str) -> &str {
    let rest = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    // Colons within brackets are an address's.
    let from = rest.find(']').unwrap_or_default();
    let colon = rest.get(from..).and_then(|tail| tail.find(':'));
    colon.and_then(|colon| rest.get(..from + colon)).unwrap_or(rest)
}

/// Whether a host is a name that only this machine has.
pub(crate) fn is_local(host: &str) -> bool {
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address = literal.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_send_them() {
        for good in [
            "https://app.example",
            "https://app.example:8443",
            "http://localhost:5173",
            "http://[::1]:5173",
            "http://127.0.0.1",
            "chrome-extension://abcdefghijklmnop",
            "tauri://localhost",
        ] {
            assert_eq!(origin(good).as_ref().map(Origin::as_str), Ok(good));
        }
        for bad in [
            "",
            "*",
            "null",
            "app.example",
            "https://",
            "https://app.example/",
            "https://app.example/page",
            "https://App.example",
            "HTTPS://app.example",
            "https://me@app.example",
            "https://app.example:443",
            "http://app.example:80",
            "https://app.example:",
            "https://app.example:08443",
            "https://app.example:65536",
            "https://app.example?x",
            "https://*.example",
            "https://bücher.example",
            "https://a b",
            "https://[::1",
            "https://app.example\r\nx: y",
        ] {
            assert!(origin(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn those_of_this_machine_are_known() {
        let local = |text: &str| origin(text).expect("an origin").is_local();
        for here in ["http://localhost:5173", "http://127.0.0.1", "http://[::1]:5173"] {
            assert!(local(here), "{here}");
        }
        for other in ["https://app.example", "https://localhost.example", "http://10.0.0.1"] {
            assert!(!local(other), "{other}");
        }
    }
}
