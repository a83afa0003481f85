//! The query string of a path: values by name.
//!
//! Values here are names and hex digits, none of which is ever written with a percent sign.

use super::problem::Problem;

/// Names and values that nobody has asked for yet.
pub struct QueryString(Vec<(String, String)>);

impl QueryString {
    /// Reads `name=value&…`.
    ///
    /// # Errors
    /// 400 for values with other characters than names have.
    pub fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let read = pairs.map(|pair| match pair.split_once('=') {
            Some((name, value)) if !value.is_empty() && pair.bytes().all(|b| b == b'=' || plain(b)) => {
                Ok((name.to_owned(), value.to_owned()))
            }
            _ => Err(Problem::bad_request(
                "behind the question mark stand name=value pairs; values have the characters a-z A-Z 0-9 . _ -",
            )),
        });
        Ok(QueryString(read.collect::<Result<_, _>>()?))
    }

    /// The one value of that name.
    ///
    /// # Errors
    /// 400 if there are several.
    pub fn one(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let mut values = self.all(name);
        let value = values.pop();
        if values.is_empty() {
            return Ok(value);
        }
        Err(Problem::bad_request(format!("{name} must be given once")))
    }

    /// Every value of that name, in their order.
    pub fn all(&mut self, name: &str) -> Vec<String> {
        self.0.extract_if(.., |(found, _)| found == name).map(|(_, value)| value).collect()
    }

    /// Refuses what nobody has asked for.
    ///
    /// # Errors
    /// 400, with its name.
    pub fn finish(self) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::bad_request(format!("{name} means nothing here"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_plain_known_and_single_where_they_must_be() {
        let mut read = QueryString::parse(Some("key=00ff&kept=a&kept=b.c")).expect("plain");
        assert_eq!(read.one("key").expect("one").as_deref(), Some("00ff"));
        assert_eq!(read.all("kept"), ["a", "b.c"]);
        assert!(read.finish().is_ok());
        let mut twice = QueryString::parse(Some("key=a&key=b")).expect("plain");
        assert!(twice.one("key").is_err());
        assert!(QueryString::parse(Some("other=1")).expect("plain").finish().is_err());
        assert!(QueryString::parse(None).expect("nothing").finish().is_ok());
        for bad in ["key", "key=", "key=%20", "key=a b", "key=a/b", "k\u{e9}y=a"] {
            assert!(QueryString::parse(Some(bad)).is_err(), "{bad}");
        }
    }
}
