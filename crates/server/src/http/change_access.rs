//! Whether a token is for all parts of a change.
//!
//! The server cannot read what a change does to an owner's rows, but it sees which parts of a
//! collection it touches. A device that only adds may add only, what an owner does every day changes
//! rows only, and whatever could lose a whole collection takes the permission admin.

use crate::auth::{Principal, Verb};
use crate::storage::{APPENDED, OWNED, STATE, WRAP};
use ciphervec::store::Change;

/// Refuses the parts of a change that the token is not for.
///
/// # Errors
/// The verb that is needed, and the part that needs it.
pub(super) fn check(
    principal: &Principal,
    collection: &str,
    change: &Change,
) -> Result<(), (Verb, String)> {
    if principal.allows(Verb::Admin, collection) {
        return Ok(());
    }
    let refused = |verb: Verb, part: &str| Err((verb, part.to_owned()));
    let Change { add, remove, delete_rows, set_meta, attachments, drop_attachments } = change;
    if set_meta.is_some() {
        return refused(Verb::Admin, "a change of the description, as for new keys,");
    }
    if !drop_attachments.is_empty() {
        return refused(Verb::Admin, "dropping an attachment");
    }
    if let Some((name, _)) = attachments.iter().find(|(name, _)| !OWNED.contains(&name.as_str())) {
        return refused(Verb::Admin, &format!("setting the attachment {name:?}"));
    }
    if principal.allows(Verb::Write, collection) {
        return Ok(());
    }
    if !attachments.is_empty() {
        return refused(Verb::Write, &format!("setting the attachment {STATE:?}"));
    }
    if !remove.is_empty() || !delete_rows.is_empty() {
        return refused(Verb::Write, "removing segments or rows");
    }
    for segment in add {
        let has = |blob: &str| segment.blobs.iter().any(|(name, _)| name == blob);
        if !has(WRAP) {
            return refused(Verb::Write, "a segment without a wrapped key");
        }
        let other = segment.blobs.iter().find(|(name, _)| !APPENDED.contains(&name.as_str()));
        if let Some((name, _)) = other {
            return refused(Verb::Write, &format!("a segment with a blob {name:?}"));
        }
    }
    if add.is_empty() {
        return refused(Verb::Write, "a change that adds nothing");
    }
    Ok(())
}
