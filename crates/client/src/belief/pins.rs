//! Pins: the latest authenticated state that a user has seen of a collection. Of two, the one that has seen more counts, and a history
//! that was left is never gone back to.

use serde::{Deserialize, Serialize};

/// One authenticated state: which collection, which history, and how far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The collection, in hexadecimal.
    pub origin: String,
    /// The history, in hexadecimal.
    pub lineage: String,
    /// The state's number.
    pub sequence: u64,
    /// The state's name, in hexadecimal.
    pub name: String,
    /// The epoch of its query key.
    pub epoch: u64,
    /// Lineages that were followed before.
    pub left: Vec<String>,
    /// The member list, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<ListPin>,
}

/// A member list, as far as it had come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPin {
    /// Changes of it.
    pub changes: usize,
    /// What stands for them, in hexadecimal.
    pub head: String,
}

impl Pin {
    /// This pin in the place of another.
    #[must_use]
    pub fn after(mut self, other: Option<&Pin>) -> Self {
        if let Some(other) = other {
            self.left.clone_from(&other.left);
            if other.lineage != self.lineage {
                self.left.push(other.lineage.clone());
                self.left.retain(|one| *one != self.lineage);
            }
        }
        self
    }

    /// Which of two of one user's clients has seen more.
    pub fn latest(mine: Option<Self>, theirs: Option<Self>) -> Option<Self> {
        let (Some(mine), Some(theirs)) = (&mine, &theirs) else { return mine.or(theirs) };
        let newer = if theirs.left.contains(&mine.lineage) {
            theirs
        } else if mine.left.contains(&theirs.lineage) {
            mine
        } else if theirs.sequence > mine.sequence {
            theirs
        } else {
            mine
        };
        Some(newer.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pin(lineage: &str, sequence: u64, left: &[&str]) -> Pin {
        let left = left.iter().map(|one| (*one).to_owned()).collect();
        let [origin, name] = ["o", "n"].map(str::to_owned);
        Pin { origin, lineage: lineage.to_owned(), sequence, name, epoch: 0, left, members: None }
    }

    #[test]
    fn the_pin_that_left_the_others_lineage_counts() {
        let (before, after) = (pin("a", 90, &[]), pin("b", 3, &["a"]));
        for (mine, theirs) in [(&before, &after), (&after, &before)] {
            let found = Pin::latest(Some(mine.clone()), Some(theirs.clone()));
            assert_eq!(found.as_ref(), Some(&after));
        }
        assert_eq!(pin("b", 3, &[]).after(Some(&before)), after);
        assert_eq!(pin("a", 4, &[]).after(Some(&after)).left, ["b"]);
        assert_eq!(Pin::latest(None, Some(before.clone())), Some(before));
    }

    proptest! {
        #[test]
        fn of_one_lineage_the_later_state_counts_whoever_asks(mine: u64, theirs: u64) {
            let (mine, theirs) = (pin("a", mine, &[]), pin("a", theirs, &[]));
            let found = Pin::latest(Some(mine.clone()), Some(theirs.clone()));
            prop_assert_eq!(&found, &Pin::latest(Some(theirs.clone()), Some(mine.clone())));
            prop_assert_eq!(found.map(|pin| pin.sequence), Some(mine.sequence.max(theirs.sequence)));
        }

        #[test]
        fn a_step_taken_is_never_taken_back(lineages in proptest::collection::vec("[a-d]", 1..9)) {
            let mut seen = pin("a", 0, &[]);
            for lineage in &lineages {
                let before = seen.clone();
                seen = pin(lineage, before.sequence, &[]).after(Some(&before));
                prop_assert!(!seen.left.contains(&seen.lineage));
                if seen.lineage != before.lineage {
                    prop_assert_eq!(
                        Pin::latest(Some(before.clone()), Some(seen.clone())), Some(seen.clone())
                    );
                }
            }
        }
    }
}
