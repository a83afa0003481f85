//! Evaluation keys and kept inputs of a program's clients: checked, stored, replaced and removed.

use super::limits::invalid;
use super::memory::{Admission, Item, KeptInput, Wanted};
use super::record::{
    KeptRecord, KeyRecord, MOST_INPUTS, MOST_KEYS, Record, Sender, input_attachment,
    keys_attachment,
};
use super::{
    CHECK_MS, Programs, StoredProgram, blocking, no_keys, wanted_input, wanted_keys, wanted_plan,
};
use crate::storage::error::DatabaseError;
use ciphervec::program::{Footprint, Sealed, Server, key_of_input, key_of_keys};
use ciphervec::store::CommitKey;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Programs {
    /// Stores the evaluation keys of one client. Whether they were not there before.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for what are no keys of this plan and id, [`DatabaseError::Exists`]
    /// for other keys of that id, [`DatabaseError::Foreign`], [`DatabaseError::Quota`],
    /// [`DatabaseError::Busy`]; those of the store.
    pub async fn put_keys(
        self: &Arc<Self>,
        program: &Arc<StoredProgram>,
        key: &str,
        keys: Vec<u8>,
        sender: &Sender,
        (commit, hold): (Option<CommitKey>, impl Send + 'static),
    ) -> Result<bool, DatabaseError> {
        let shown = program.shown();
        let plan = &shown.record.plan;
        check_length("evaluation keys", plan.key_bytes, keys.len())?;
        let (found, hash) = {
            let keys = &keys;
            (key_of_keys(keys).map_err(invalid)?.to_string(), blake3::hash(keys))
        };
        check_key(key, &found)?;
        let record = KeyRecord {
            token: sender.token.clone(),
            added: Timestamp::now(),
            bytes: keys.len() as u64,
            hash: hash.to_hex().to_string(),
            inputs: BTreeMap::new(),
        };
        if let Some(there) = shown.record.keys.get(key)
            && there.hash == record.hash
        {
            return Ok(false);
        }
        let wanted = [wanted_plan(plan), wanted_keys(plan, &record)];
        let turn = self.checks.take(CHECK_MS).await?;
        let admission = self.memory.admit(&wanted, 0).await?;
        let (programs, program, key) = (Arc::clone(self), Arc::clone(program), key.to_owned());
        blocking(move || {
            let _held = (hold, turn);
            let Admission { mut room, found } = admission;
            let plan = programs.plan(&shown, found.first(), &mut room)?;
            let checked = programs.computing.install(|| Server::new(plan, &keys));
            let server = Arc::new(checked.map_err(invalid)?);
            let _adding = programs.add(&record.token, record.bytes)?;
            let attachments = vec![(keys_attachment(&key), keys)];
            let edit = |held: &mut Record| {
                if let Some(there) = held.keys.get(&key) {
                    let says = format!("other evaluation keys of {key}");
                    return if there.hash == record.hash {
                        Ok(None)
                    } else {
                        Err(DatabaseError::Exists(says))
                    };
                }
                if held.keys.len() >= MOST_KEYS {
                    let says = format!("there are {MOST_KEYS} keys already");
                    return Err(DatabaseError::Quota(says));
                }
                held.keys.insert(key.clone(), record.clone());
                Ok(Some(Vec::new()))
            };
            let made = programs.reading.install(|| program.change(commit, attachments, &edit))?;
            room.keep(wanted[1], Item::Keys(server));
            Ok(made)
        })
        .await
    }

    /// Removes a client's keys and what is kept under them.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Foreign`]; those of the store.
    pub fn remove_keys(
        &self,
        program: &StoredProgram,
        key: &str,
        sender: &Sender,
        commit: Option<CommitKey>,
    ) -> Result<(), DatabaseError> {
        let edit = |held: &mut Record| {
            let keys = held.keys.remove(key).ok_or_else(|| no_keys(key))?;
            sender.check(key, &keys)?;
            let inputs = keys.inputs.keys().map(|name| input_attachment(key, name));
            Ok(Some(inputs.chain([keys_attachment(key)]).collect()))
        };
        self.reading.install(|| program.change(commit, Vec::new(), &edit)).map(drop)
    }

    /// Keeps an encrypted input under a name, instead of what was kept under it.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] without the key's evaluation keys; [`DatabaseError::Invalid`] for
    /// what is no input of this plan and key; [`DatabaseError::Foreign`], [`DatabaseError::Quota`],
    /// [`DatabaseError::Busy`]; those of the store.
    pub async fn keep(
        self: &Arc<Self>,
        program: &Arc<StoredProgram>,
        (key, name): (&str, &str),
        input: Vec<u8>,
        sender: &Sender,
        (commit, hold): (Option<CommitKey>, impl Send + 'static),
    ) -> Result<bool, DatabaseError> {
        let shown = program.shown();
        let plan = &shown.record.plan;
        sender.check(key, shown.record.keys.get(key).ok_or_else(|| no_keys(key))?)?;
        let id = key_of_input(&input).map_err(invalid)?;
        check_key(key, &id.to_string())?;
        let hash = blake3::hash(&input).to_hex().to_string();
        let most = plan.inputs.iter().map(|input| input.memory).max().unwrap_or(0);
        let wanted = [wanted_plan(plan)];
        let turn = self.checks.take(CHECK_MS).await?;
        let admission = self.memory.admit(&wanted, most).await?;
        let (programs, program, sender) = (Arc::clone(self), Arc::clone(program), sender.clone());
        let place = (key.to_owned(), name.to_owned());
        blocking(move || {
            let _held = (hold, turn);
            let (key, name) = place;
            let Admission { mut room, found } = admission;
            let plan = programs.plan(&shown, found.first(), &mut room)?;
            let read = programs.computing.install(|| Sealed::read(&plan, id, &input));
            let sealed = read.map_err(invalid)?;
            let of = &plan.circuit().inputs[sealed.index()];
            let record = KeptRecord {
                input: of.name.clone(),
                added: Timestamp::now(),
                bytes: input.len() as u64,
                hash,
            };
            let wanted = Wanted {
                bytes: Footprint::input(&plan, of),
                ..wanted_input(&shown.record.plan, &record)
            };
            let _adding = programs.add(&sender.token, record.bytes)?;
            let attachments = vec![(input_attachment(&key, &name), input)];
            let edit = |held: &mut Record| {
                let keys = held.keys.get_mut(&key).ok_or_else(|| no_keys(&key))?;
                sender.check(&key, keys)?;
                if keys.inputs.get(&name).is_some_and(|kept| kept.hash == record.hash) {
                    return Ok(None);
                }
                if keys.inputs.len() >= MOST_INPUTS && !keys.inputs.contains_key(&name) {
                    let says = format!("{MOST_INPUTS} inputs are kept under {key} already");
                    return Err(DatabaseError::Quota(says));
                }
                keys.inputs.insert(name.clone(), record.clone());
                Ok(Some(Vec::new()))
            };
            let made = programs.reading.install(|| program.change(commit, attachments, &edit))?;
            room.keep(wanted, Item::Input(Arc::new(KeptInput { sealed, plan })));
            Ok(made)
        })
        .await
    }

    /// Forgets a kept input.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Foreign`]; those of the store.
    pub fn forget(
        &self,
        program: &StoredProgram,
        (key, name): (&str, &str),
        sender: &Sender,
        commit: Option<CommitKey>,
    ) -> Result<(), DatabaseError> {
        let edit = |held: &mut Record| {
            let keys = held.keys.get_mut(key).ok_or_else(|| no_keys(key))?;
            sender.check(key, keys)?;
            let gone = || DatabaseError::NotFound(format!("no input {name:?} under {key}"));
            keys.inputs.remove(name).ok_or_else(gone)?;
            Ok(Some(vec![input_attachment(key, name)]))
        };
        self.reading.install(|| program.change(commit, Vec::new(), &edit)).map(drop)
    }
}

fn check_length(what: &str, expected: u64, actual: usize) -> Result<(), DatabaseError> {
    if actual as u64 == expected {
        return Ok(());
    }
    Err(DatabaseError::Invalid(format!(
        "{what} of this plan have {expected} bytes, got {actual}; make them for the plan that is stored here"
    )))
}

fn check_key(expected: &str, actual: &str) -> Result<(), DatabaseError> {
    if actual == expected {
        return Ok(());
    }
    Err(DatabaseError::Invalid(format!(
        "the bytes belong to the key {actual}, and the request names {expected}"
    )))
}
