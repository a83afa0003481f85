//! Words: what a document, and a question, is taken apart into for ranking by words. Both sides of a comparison go through here, and
//! what is stored depends on it: another rule needs another number in [`super::bm25::Bm25`].
//!
//! Compatibility forms are made one (NFKC), then upper and lower case, then words are those of Unicode's annex 29. Scripts that put no
//! spaces between words come as single characters there: each of those is a word, and so are any two that follow one another.

use unicode_segmentation::UnicodeSegmentation;

/// Bytes of a word that is told from others; a longer one is cut, at a character.
const LONGEST: usize = 256;

/// Shows each word of a text, in order, as often as it is there.
pub fn each_word(text: &str, mut show: impl FnMut(&str)) {
    let folded = normalized(text).to_lowercase();
    let mut before: Option<(usize, &str)> = None;
    let mut pair = String::new();
    for (start, word) in folded.unicode_word_indices() {
        let alone = stands_alone(word);
        if let (true, Some((end, first))) = (alone, before)
            && end == start
        {
            pair.clear();
            pair.push_str(first);
            pair.push_str(word);
            show(&pair);
        }
        show(cut(word));
        before = alone.then_some((start + word.len(), word));
    }
}

#[cfg(feature = "normalization")]
fn normalized(text: &str) -> String {
    unicode_normalization::UnicodeNormalization::nfkc(text).collect()
}

/// What makes compatibility forms one.
#[cfg(not(feature = "normalization"))]
static NORMALIZER: std::sync::OnceLock<fn(&str) -> String> = std::sync::OnceLock::new();

/// Has a face's own NFKC taken, in the whole process: its tables are 60 kB, and JavaScript has them. False where it was set before.
#[cfg(not(feature = "normalization"))]
pub fn normalize_by(nfkc: fn(&str) -> String) -> bool {
    NORMALIZER.set(nfkc).is_ok()
}

#[cfg(not(feature = "normalization"))]
fn normalized(text: &str) -> String {
    match NORMALIZER.get() {
        Some(nfkc) => nfkc(text),
        None => unreachable!(
            "words before a call of normalize_by: pass it NFKC first, or build with the feature normalization"
        ),
    }
}

/// Whether it is one character of a script without spaces: annex 29 keeps the letters of all scripts before Thai together.
fn stands_alone(word: &str) -> bool {
    word.starts_with(|first| first >= '\u{0e00}') && word.graphemes(true).nth(1).is_none()
}

fn cut(word: &str) -> &str {
    let ends = |most: usize| (0..=most).rev().find(|end| word.is_char_boundary(*end));
    if word.len() <= LONGEST { word } else { &word[..ends(LONGEST).unwrap_or(0)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each_word(text, |word| found.push(word.to_owned()));
        found
    }

    #[test]
    fn words_are_those_of_any_script() {
        assert_eq!(
            words("The cat's 3.14 e-mails: ﬁle_7, ＡＢＣ!"),
            ["the", "cat's", "3.14", "e", "mails", "file_7", "abc"]
        );
        assert_eq!(words("Straße ΣΊΣΥΦΟΣ Ёлка"), ["straße", "σίσυφος", "ёлка"]);
        // Each character, and each two that follow one another.
        assert_eq!(words("機械学 x 習"), ["機", "機械", "械", "械学", "学", "x", "習"]);
        assert_eq!(words("กขค"), ["ก", "กข", "ข", "ขค", "ค"]);
        assert_eq!(words("हिन्दी में"), ["हिन्दी", "में"]);
        assert_eq!(words("한국어 검색"), ["한국어", "검색"]);
    }

    #[test]
    fn what_has_no_word_has_none() {
        assert_eq!(words(""), Vec::<String>::new());
        assert_eq!(words(" \u{0} … — 👍🏽 \u{200b}"), Vec::<String>::new());
        let long = "ä".repeat(1000);
        assert_eq!(words(&long), ["ä".repeat(128)]);
        // Composed or not, it is one word.
        assert_eq!(words("e\u{301}te\u{301}"), words("été"));
    }
}
