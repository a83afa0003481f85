//! Description: what a collection is, as it lies beside its segments. What stands in clear is believed as far as the owner's keys
//! bear it out: the index spec and what is sealed to it.
//!
//! In clear: the index spec, the scheme, the key id, the epoch; while keys change, each of them in a form that the other opens. Sealed,
//! as the one record of a segment that never exists: everything else.

use std::collections::BTreeMap;
use std::sync::Arc;

use ciphervec_he_secret::Error as WireError;
use ciphervec_owner::members::MemberList;
use ciphervec_owner::protect::aead::EnvelopeError;
use ciphervec_owner::protect::records::{Place, RecordBatch, open_record, seal_records};
use ciphervec_owner::search::{Owner, RotationState};
use ciphervec_owner::{Error as SchemeError, IndexSpec, Keys, Metric, Mode, Network, SegmentId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::belief::choices::{Choices, check_fields, check_sparse, seeded, to_save};
use crate::belief::holder::{Holder, keys_of, listed};
use crate::change::{EVALUATION, KEY_PAIR};
use crate::clusters::choice::Clusters;
use crate::error::{Error, Result};
use crate::face::Face;
use crate::gathered::gathered;
use crate::hex::Hex;
use crate::json::{self, Bytes};
use crate::records::bm25::Bm25;
use crate::records::muvera::{Encoder, Muvera};
use crate::records::original::is_kept;
use crate::records::sparse::Sparse;
use crate::threads::heavy;

/// Format 1 knew the scheme `lattice` alone, by a former name, and did not name it; format 2 no change of keys, format 3 neither
/// incarnations nor authenticated states, format 4 no routing, format 5 no center that was given, format 6 no sparse half, format 7
/// no members and one vector a row alone. Written is the oldest that says what there is to say.
const FORMAT: u64 = 8;
const PLACE: [u8; 16] = [0; 16];
const ID: &str = "ciphervec collection settings";
/// Of settings that name a function for texts, so that their length does not tell which.
const STEP: usize = 512;

/// A change of keys that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rotation {
    /// The public name of the keys before.
    previous_id: String,
    /// Those keys, encrypted under the present ones.
    previous: Bytes,
    /// The present ones, encrypted under those before, if both are to work meanwhile.
    following: Option<Bytes>,
}

/// What answers travel over, by what is written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct StoredNetwork {
    megabits: f64,
    latency_ms: f64,
}

/// What is sealed.
#[derive(Debug, Serialize, Deserialize)]
struct Settings {
    filterable: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mask_seed: Option<Hex<32>>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    authenticated: bool,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    originals: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<StoredNetwork>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    untagged: Vec<Hex<16>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<Clusters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    center: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sparse: Option<Sparse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multi: Option<Muvera>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding_function: Option<Box<RawValue>>,
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    format: u64,
    spec: Bytes,
    #[serde(default)]
    scheme: String,
    key_id: String,
    epoch: u32,
    settings: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rotation: Option<Rotation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<Bytes>,
}

/// A collection's fixed choices, and the epoch of its query key.
#[derive(Clone, Debug)]
pub struct Description {
    pub spec: IndexSpec,
    pub key_id: String,
    pub epoch: u32,
    pub filterable: Vec<String>,
    /// Whether the owner authenticates every state.
    pub authenticated: bool,
    /// Whether vectors are kept as they were put in.
    pub originals: bool,
    pub network: Network,
    /// Segments from before the latest filterable field, whose tags say nothing of it.
    pub untagged: Vec<SegmentId>,
    /// How rows are put in clusters, which queries ask about.
    pub routing: Option<Clusters>,
    /// What rows of metric `l2` are sealed around, where that was given.
    pub center: Vec<f32>,
    /// What rows are ranked by beside their vectors; it lies beside them, in order of words or indices.
    pub sparse: Option<Sparse>,
    /// Who may do what with it, where it has members: signed, and in clear.
    pub members: Option<Arc<MemberList>>,
    /// What makes one vector of the many of a row.
    pub multi: Option<Arc<Encoder>>,
    mask_seed: Option<[u8; 32]>,
    rotation: Option<Rotation>,
    /// What embeds texts, in the words of whoever wrote it.
    embedding: Option<Box<RawValue>>,
}

impl Description {
    /// Of a collection that is to be made, `now` seconds after 1970. A member founds a list of members with it, under new keys.
    pub fn new(face: Face, holder: Option<&Holder>, choices: &Choices, now: u64) -> Result<Self> {
        let Choices { metric, mode, filterable, .. } = choices;
        let spec = choices.checked(face)?;
        let (keys, members) = match holder {
            Some(Holder::Member(identity)) if *mode != Mode::Open => {
                let (keys, origin) = (Arc::new(Keys::generate()?), spec.incarnation());
                let origin = *origin.unwrap_or(&[0; 16]); // every new collection has one
                let list = MemberList::found(identity, origin, &keys, now)?;
                (keys, Some(Arc::new(list)))
            }
            _ => (keys_of(face, holder, &spec, None)?, None),
        };
        let spec_of = spec.clone();
        let owner = heavy(|| Owner::new(&keys, spec_of))?;
        Ok(Description {
            key_id: owner.key_id().to_string(),
            epoch: 0,
            filterable: filterable.clone(),
            authenticated: *mode != Mode::Open,
            // What is unsealed under hamming is what was put in.
            originals: choices.originals.unwrap_or(true) && *metric != Metric::Hamming,
            network: choices.network.unwrap_or_default(),
            untagged: Vec::new(),
            routing: choices.routing.clone(),
            center: choices.center.clone(),
            sparse: choices.sparse,
            members,
            multi: choices.multi.map(seeded).transpose()?.map(encoder),
            mask_seed: None,
            rotation: None,
            embedding: to_save(choices.embedding_function.as_deref(), *mode)?,
            spec,
        })
    }

    /// The bytes for the store, sealed by the owner under the keys that they name.
    pub fn write(&self, face: Face, owner: &Owner) -> Result<Vec<u8>> {
        let floats = |floats: &[f32]| Bytes(floats.iter().flat_map(|x| x.to_le_bytes()).collect());
        let Network { bytes_per_second, round_trip } = self.network;
        let network =
            StoredNetwork { megabits: bytes_per_second / 125e3, latency_ms: round_trip * 1e3 };
        let settings = Settings {
            filterable: self.filterable.clone(),
            mask_seed: self.mask_seed.map(Hex),
            authenticated: self.authenticated,
            originals: self.originals,
            network: (self.network != Network::default()).then_some(network),
            untagged: self.untagged.iter().map(|id| Hex(id.0)).collect(),
            routing: self.routing.clone(),
            center: (!self.center.is_empty()).then(|| floats(&self.center)),
            sparse: self.sparse,
            multi: self.multi.as_ref().map(|multi| multi.muvera()),
            embedding_function: self.embedding.clone(),
        };
        let mut text = face.json(&settings);
        if self.embedding.is_some() {
            text.resize(text.len().next_multiple_of(STEP), b' ');
        }
        let binding = self.spec.binding();
        let place = Place { collection: &binding, segment: &PLACE };
        let sealed = seal_records(owner.aead(), place, &[(ID.into(), text)])
            .map_err(SchemeError::Envelope)?;
        let format = if self.members.is_some() || self.multi.is_some() {
            8
        } else if self.sparse.is_some() {
            7
        } else if !self.center.is_empty() {
            6
        } else if self.routing.is_some() {
            5
        } else if self.authenticated || self.spec.incarnation().is_some() {
            4
        } else if self.mask_seed.is_some() || self.rotation.is_some() {
            3
        } else {
            2
        };
        Ok(face.json(&Stored {
            format,
            spec: Bytes(self.spec.to_bytes()),
            scheme: self.spec.scheme().stored_name().to_owned(),
            key_id: self.key_id.clone(),
            epoch: self.epoch,
            settings: Bytes(sealed),
            rotation: self.rotation.clone(),
            members: self.members.as_ref().map(|list| Bytes(list.to_bytes())),
        }))
    }

    /// The same collection with further filterable fields, of which these segments have no tags.
    pub fn with_filterable(
        &self,
        face: Face,
        fields: &[String],
        untagged: Vec<SegmentId>,
    ) -> Result<Self> {
        self.refuse_former(face, "which would find less than there is")?;
        let filterable = [&self.filterable, fields].concat();
        check_fields(&filterable)?;
        Ok(Description { filterable, untagged, ..self.clone() })
    }

    /// The same collection, embedded by another function, or by none that is known.
    pub fn with_embedding(&self, face: Face, function: Option<&str>) -> Result<Self> {
        self.refuse_former(face, "which would forget the function")?;
        let embedding = to_save(function, self.spec.mode())?;
        Ok(Description { embedding, ..self.clone() })
    }

    /// The same collection with rows ranked by this beside their vectors.
    pub fn with_sparse(&self, face: Face, sparse: Sparse) -> Result<Self> {
        self.refuse_former(face, "which would forget what rows are ranked by")?;
        check_sparse(&sparse, self.routing.as_ref())?;
        if self.sparse.is_some_and(|known| known.kind() != sparse.kind()) {
            return Error::input(format!(
                "rows of {} are ranked by words or by sparse vectors, which was chosen and stays. Put them into another collection.",
                face.quoted(self.spec.collection())
            ));
        }
        Ok(Description { sparse: Some(sparse), ..self.clone() })
    }

    /// Whether these bytes are what a row's vector is kept as, or say that it was not.
    pub fn keeps(&self, bytes: &[u8]) -> bool {
        is_kept(bytes, self.spec.dimension(), self.multi.as_deref())
    }

    /// What embeds texts, as it was saved.
    pub fn embedding(&self) -> Option<&str> {
        self.embedding.as_deref().map(RawValue::get)
    }

    fn refuse_former(&self, face: Face, why: &str) -> Result<()> {
        if self.spec.incarnation().is_some() || self.authenticated {
            return Ok(());
        }
        Error::input(format!(
            "collection {} was made by release 0.1, {why}. Call upgrade() first.",
            face.quoted(self.spec.collection())
        ))
    }

    /// The same collection under the keys that its owners gave it by this list, where it has one.
    pub fn rekeyed(self, members: Option<Arc<MemberList>>) -> Self {
        Description { members, ..self }
    }

    /// The same collection under another query key.
    pub fn with_epoch(&self, epoch: u32) -> Self {
        Description { epoch, ..self.clone() }
    }

    /// The same collection under the keys of `following`, while some of it is still under the `present` ones; with `overlap` those open
    /// it meanwhile as well.
    pub fn rotating(
        &self,
        (following, keys): (&Owner, &Keys),
        (present, present_keys): (&Owner, &Keys),
        overlap: bool,
    ) -> Result<Self> {
        let rotation = Rotation {
            previous_id: self.key_id.clone(),
            previous: Bytes(following.seal_keys(present_keys)?),
            following: overlap.then(|| present.seal_keys(keys)).transpose()?.map(Bytes),
        };
        Ok(Description {
            key_id: following.key_id().to_string(),
            epoch: self.epoch.saturating_add(1),
            mask_seed: Some(*following.mask_seed()),
            rotation: Some(rotation),
            ..self.clone()
        })
    }

    /// The same collection under another owner's keys, all of it at once.
    pub fn under(&self, owner: &Owner) -> Self {
        Description { key_id: owner.key_id().to_string(), ..self.clone() }
    }

    /// The same collection, all of it under its present keys.
    pub fn rotated(&self) -> Self {
        Description { rotation: None, ..self.clone() }
    }

    /// The keys that it comes from, while they are being changed.
    pub fn rotates_from(&self) -> Option<&str> {
        self.rotation.as_ref().map(|rotation| rotation.previous_id.as_str())
    }

    /// Of what a store shows, checking the key before anything is opened.
    pub fn read(face: Face, data: &[u8], name: &str, holder: Option<&Holder>) -> Result<Self> {
        let (stored, spec) = stored(face, data, name)?;
        let Stored { key_id, epoch, rotation, settings, members, .. } = stored;
        let members = members.map(|bytes| listed(&bytes.0, &spec, &key_id)).transpose();
        let members = members.map_err(|why| damaged(face, name, why))?;
        let keys = keys_of(face, holder, &spec, members.as_deref())?;
        let owner = under(face, &spec, &keys, &key_id, rotation.as_ref(), None)?;
        let text = opened(face, &owner, &settings.0)?;
        let settings: Settings = json::read(&text).map_err(|error| damaged(face, name, error))?;
        check_fields(&settings.filterable)?;
        if let Some(multi) = &settings.multi {
            multi.check().map_err(|error| damaged(face, name, error))?;
            if multi.dimension != spec.dimension() as u32 {
                return Err(damaged(face, name, "its vectors have another length than it has"));
            }
        }
        let network =
            settings.network.unwrap_or(StoredNetwork { megabits: 1000.0, latency_ms: 0.5 });
        let floats = |bytes: Bytes| {
            bytes
                .0
                .as_chunks::<4>()
                .0
                .iter()
                .map(|four| f32::from_le_bytes(*four))
                .collect::<Vec<_>>()
        };
        Ok(Description {
            // An incarnation is part of what the settings are sealed to: the format, in clear, is not.
            authenticated: spec.mode() != Mode::Open
                && (spec.incarnation().is_some() || members.is_some() || settings.authenticated),
            originals: settings.originals,
            network: Network {
                bytes_per_second: network.megabits * 125e3,
                round_trip: network.latency_ms / 1e3,
            },
            untagged: settings.untagged.iter().map(|id| SegmentId(id.0)).collect(),
            routing: settings.routing,
            embedding: settings.embedding_function,
            center: settings.center.map(floats).unwrap_or_default(),
            sparse: settings.sparse,
            multi: settings.multi.map(encoder),
            mask_seed: settings.mask_seed.map(|seed| seed.0),
            filterable: settings.filterable,
            members,
            spec,
            key_id,
            epoch,
            rotation,
        })
    }

    /// The owner of the collection. `keys` may be the ones before a rotation that is under way, where both work.
    pub fn owner(&self, face: Face, holder: Option<&Holder>) -> Result<Owner> {
        let keys = self.keys(face, holder)?;
        under(face, &self.spec, &keys, &self.key_id, self.rotation.as_ref(), self.mask_seed)
    }

    /// The keys that this holder has of it.
    pub fn keys(&self, face: Face, holder: Option<&Holder>) -> Result<Arc<Keys>> {
        keys_of(face, holder, &self.spec, self.members.as_deref())
    }

    /// The same collection with this list of members.
    pub fn with_members(&self, face: Face, list: MemberList) -> Result<Self> {
        self.refuse_former(face, "whose states nobody signs")?;
        Ok(Description { members: Some(Arc::new(list)), ..self.clone() })
    }

    /// Whether indexes of this description have a key pair each.
    pub fn has_key_pair(&self) -> bool {
        self.spec.scheme().is_additive()
    }

    /// What a server needs of this owner to answer queries, and the key pair, where there is one, which is made now.
    pub fn beside(&self, owner: &Owner) -> Result<BTreeMap<&'static str, Vec<u8>>> {
        if !self.has_key_pair() {
            let evaluation = heavy(|| owner.evaluation(self.epoch))?.map(|keys| keys.to_bytes());
            return Ok(gathered([(EVALUATION, evaluation.unwrap_or_default())]));
        }
        heavy(|| owner.generate_key_pair())?;
        Ok(gathered([(EVALUATION, owner.public_key()?), (KEY_PAIR, owner.sealed_key_pair()?)]))
    }

    /// Whether queries are encrypted, so that answers carry noise of the key.
    pub fn encrypts_queries(&self) -> bool {
        self.spec.mode().encrypts_queries()
    }

    /// Whether two descriptions are read alike.
    pub fn reads_alike(&self, other: &Self) -> bool {
        let of = |one: &Self| {
            (one.key_id.clone(), one.rotation.clone(), one.filterable.clone(), one.untagged.clone())
        };
        of(self) == of(other)
    }

    /// That what is there was chosen so.
    pub fn check_choices(&self, face: Face, choices: &Choices) -> Result<()> {
        let spec = &self.spec;
        let originals = choices.originals.unwrap_or(self.originals);
        let sparse = choices.sparse.or(self.sparse);
        let listed = |fields: &[String]| format!("{fields:?}");
        let bits =
            |bits: Option<u32>| bits.map_or_else(|| "none".to_owned(), |bits| bits.to_string());
        let wanted_bits = spec.clone().with_scheme(choices.scheme, choices.bits)?.bits();
        let named = |one: Option<Sparse>| match one {
            None => "none".to_owned(),
            Some(Sparse::Bm25(Bm25 { k1, b })) => format!("BM25 of k1 {k1}, b {b}"),
            Some(Sparse::Vectors) => "sparse vectors".to_owned(),
        };
        let known = self.multi.as_ref().map(|multi| multi.muvera());
        let suits = choices.multi.zip(known).is_some_and(|(asked, known)| asked.suits(known));
        let asked = if suits { known } else { choices.multi };
        let multi =
            |one: Option<Muvera>| one.map_or_else(|| "none".to_owned(), |one| format!("{one:?}"));
        let routing = |one: Option<&Clusters>| {
            one.map_or_else(
                || "none".to_owned(),
                |one| String::from_utf8_lossy(&face.json(one)).into_owned(),
            )
        };
        for (what, asked, found) in [
            ("dimension", choices.dimension.to_string(), spec.dimension().to_string()),
            ("metric", choices.metric.as_str().to_owned(), spec.metric().as_str().to_owned()),
            ("mode", choices.mode.as_str().to_owned(), spec.mode().as_str().to_owned()),
            (
                "precision",
                choices.precision.as_str().to_owned(),
                spec.precision().as_str().to_owned(),
            ),
            ("scheme", choices.scheme.as_str().to_owned(), spec.scheme().as_str().to_owned()),
            ("bits", bits(wanted_bits), bits(spec.bits())),
            ("filterable", listed(&choices.filterable), listed(&self.filterable)),
            ("originals", originals.to_string(), self.originals.to_string()),
            ("sparse", named(sparse), named(self.sparse)),
            ("multi", multi(asked), multi(known)),
            (
                "routing",
                routing(choices.routing.as_ref().or(self.routing.as_ref())),
                routing(self.routing.as_ref()),
            ),
        ] {
            if asked != found {
                return Error::input(format!(
                    "collection {} is there with {what} {found}, not {asked}. Open it with {}, or choose another name.",
                    face.quoted(spec.collection()),
                    face.named("get_collection")
                ));
            }
        }
        Ok(())
    }
}

fn encoder(muvera: Muvera) -> Arc<Encoder> {
    Arc::new(Encoder::new(muvera))
}

/// That a description is not of a collection in mode `open`, which anybody could have written.
pub fn refuse_open(face: Face, data: &[u8], name: &str) -> Result<()> {
    let spec = stored(face, data, name).ok().map(|(_, spec)| spec); // what is wrong is told when it is read
    if spec.is_some_and(|spec| spec.mode() == Mode::Open) {
        let (name, open) = (face.quoted(name), face.quoted("open"));
        return Err(Error::Mismatch(format!(
            "the collection {name} shows mode {open}: nothing in it is sealed, and whoever keeps it can put such a one under any name. Keys \
             were given, so it was to be sealed. If it is meant to be open, pass {}, or open it without keys.",
            face.said("allow_open")
        )));
    }
    Ok(())
}

fn under(
    face: Face,
    spec: &IndexSpec,
    keys: &Keys,
    key_id: &str,
    rotation: Option<&Rotation>,
    mask_seed: Option<[u8; 32]>,
) -> Result<Owner> {
    let owner = |keys: &Keys, previous: Option<&Keys>| {
        let state = RotationState { mask_seed, previous };
        heavy(|| Owner::with_rotation(keys, spec.clone(), &state))
    };
    let given = owner(keys, None)?;
    let shown = given.key_id().to_string();
    let Some(Rotation { previous_id, previous, following }) = rotation else {
        check_key(face, spec.collection(), &shown, key_id)?;
        return Ok(given);
    };
    if let Some(following) = following.as_ref().filter(|_| shown == *previous_id) {
        let keys = given.open_keys(&following.0)?;
        let present = owner(&keys, None)?;
        check_key(face, spec.collection(), &present.key_id().to_string(), key_id)?;
        return Ok(owner(&keys, Some(&present.open_keys(&previous.0)?))?);
    }
    if shown == *previous_id {
        let name = face.quoted(spec.collection());
        return Err(Error::WrongKey(format!(
            "{name} is being given new keys: from {shown} to {key_id}, and {shown} alone opens only what has not been sealed again. Use the \
             key file of the new keys, which open both."
        )));
    }
    check_key(face, spec.collection(), &shown, key_id)?;
    Ok(owner(keys, Some(&given.open_keys(&previous.0)?))?)
}

/// That keys of this public name are those that a description names.
pub fn check_key(face: Face, name: &str, given: &str, expected: &str) -> Result<()> {
    if given == expected {
        return Ok(());
    }
    Err(Error::WrongKey(format!(
        "{} is sealed under key {expected}, but the key given is {given}. Load the key file it was made with.",
        face.quoted(name)
    )))
}

fn stored(face: Face, data: &[u8], name: &str) -> Result<(Stored, IndexSpec)> {
    #[derive(Deserialize)]
    struct Format {
        format: u64,
    }
    let unreadable = |error: serde_json::Error| damaged(face, name, error);
    let Format { format } = json::read(data).map_err(unreadable)?;
    if format > FORMAT {
        return Err(Error::Version(format!(
            "collection {} has format {format}; this ciphervec reads up to {FORMAT}. Upgrade ciphervec.",
            face.quoted(name)
        )));
    }
    let mut stored: Stored = json::read(data).map_err(unreadable)?;
    let spec = IndexSpec::from_bytes(&stored.spec.0).map_err(|error| match error {
        SchemeError::Scheme(WireError::Version { .. }) => Error::Scheme(error),
        error => damaged(face, name, error),
    })?;
    if format == 1 {
        stored.scheme = ciphervec_owner::Scheme::Lattice.stored_name().to_owned();
    }
    if format == 0 || stored.scheme != spec.scheme().stored_name() {
        let says = format!("format {format}, scheme {}", face.quoted(&stored.scheme));
        return Err(damaged(face, name, says));
    }
    if spec.collection() != name {
        let [shown, holds] = [name, spec.collection()].map(|one| face.quoted(one));
        return Error::corrupt(format!(
            "what is shown as {shown} is the collection {holds}; its name is part of what its keys are bound to."
        ));
    }
    Ok((stored, spec))
}

fn opened(face: Face, owner: &Owner, sealed: &[u8]) -> Result<Vec<u8>> {
    let batch = RecordBatch::parse(sealed).map_err(EnvelopeError::from);
    let batch = batch.map_err(SchemeError::Envelope)?;
    let (Some(record), 1) = (batch.ciphertext(0), batch.rows()) else {
        let says = format!("{} settings", batch.rows());
        return Err(damaged(face, owner.spec().collection(), says));
    };
    let binding = owner.spec().binding();
    let place = Place { collection: &binding, segment: &PLACE };
    let text = open_record(owner.aead(), place, &ID.into(), 0, record);
    Ok(text.map_err(SchemeError::Envelope)?.to_vec())
}

fn damaged(face: Face, name: &str, reason: impl core::fmt::Display) -> Error {
    let name = face.quoted(name);
    Error::Corrupt(format!(
        "the description of collection {name} is damaged: {reason}. Restore it from a copy."
    ))
}
