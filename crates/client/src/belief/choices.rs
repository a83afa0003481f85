//! Choices: what a new collection is to be, as a caller says it, and whether it may be so.

use ciphervec_owner::store::shelf::valid_name;
use ciphervec_owner::{IndexSpec, Metric, Mode, Network, Precision, Scheme};
use serde_json::value::RawValue;

use crate::clusters::choice::Clusters;
use crate::error::{Error, Result};
use crate::face::Face;
use crate::random::random;
use crate::records::muvera::{MAX_SEED, Muvera};
use crate::records::sparse::Sparse;

const MAX_DIMENSION: usize = 16_384;

/// What a new collection is to be.
#[derive(Clone, Debug)]
pub struct Choices {
    /// 1 to 128 characters: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// Numbers of a vector.
    pub dimension: usize,
    /// What closeness is.
    pub metric: Metric,
    /// What the server sees.
    pub mode: Mode,
    /// Of scores, in the modes that encrypt.
    pub precision: Precision,
    /// Fields whose equality a server may test by keyed tags.
    pub filterable: Vec<String>,
    /// Whether vectors are kept as they were put in, beside the sealed ones.
    pub originals: Option<bool>,
    /// That a query asks about a few clusters of near rows, which shows the server which.
    pub routing: Option<Clusters>,
    /// What vectors are encrypted by. All but the lattice's have a key pair for each collection.
    pub scheme: Scheme,
    /// Of the modulus of such a key pair; what the scheme has where it is left out.
    pub bits: Option<u32>,
    /// What answers travel over: rows are packed for it.
    pub network: Option<Network>,
    /// What rows of metric `l2` are sealed around; where it is empty, rows tell.
    pub center: Vec<f32>,
    /// What rows are ranked by beside their vectors.
    pub sparse: Option<Sparse>,
    /// That a row has many vectors, and how they become the one that is searched: one of as many numbers as `dimension`.
    pub multi: Option<Muvera>,
    /// What embeds texts, as JSON: sealed, and never read here.
    pub embedding_function: Option<String>,
}

impl Choices {
    /// The defaults: `cosine`, `sealed`, `standard`, nothing filterable, originals kept, not routed, on a lattice.
    pub fn new(name: impl Into<String>, dimension: usize) -> Self {
        Choices {
            name: name.into(),
            dimension,
            metric: Metric::Cosine,
            mode: Mode::Sealed,
            precision: Precision::Standard,
            filterable: Vec::new(),
            originals: None,
            routing: None,
            scheme: Scheme::Lattice,
            bits: None,
            network: None,
            center: Vec::new(),
            sparse: None,
            multi: None,
            embedding_function: None,
        }
    }

    /// What the index of a collection of these choices is, one that no other has.
    pub(super) fn checked(&self, face: Face) -> Result<IndexSpec> {
        let Choices { name, dimension, metric, mode, precision, filterable, .. } = self;
        check_name(name)?;
        if !(1..=MAX_DIMENSION).contains(dimension) {
            return Error::input(format!(
                "dimension must be 1 to {MAX_DIMENSION}, got {dimension}. Reduce it first, e.g. by PCA."
            ));
        }
        check_fields(filterable)?;
        let spec = IndexSpec::new(name, *dimension as u32, *metric, *mode, *precision)?
            .with_scheme(self.scheme, self.bits)?
            .with_incarnation(random()?);
        if let Some(sparse) = &self.sparse {
            check_sparse(sparse, self.routing.as_ref())?;
        }
        if let Some(multi) = &self.multi {
            check_multi(face, multi, self, &spec)?;
        }
        if let Some(routing) = &self.routing {
            routing.check(face, &spec, filterable)?;
        }
        if let Some(network) = &self.network {
            check_network(network)?;
        }
        check_center(face, &self.center, &spec)?;
        Ok(spec)
    }
}

/// That this is a network of which something comes.
pub fn check_network(network: &Network) -> Result<()> {
    let Network { bytes_per_second, round_trip } = *network;
    if (1e3..=1e12).contains(&bytes_per_second) && (0.0..=1e3).contains(&round_trip) {
        return Ok(());
    }
    Error::input(format!(
        "a network has 1e3 to 1e12 bytes a second and at most 1e3 seconds there and back; got {bytes_per_second} and {round_trip}."
    ))
}

pub(super) fn check_sparse(sparse: &Sparse, routing: Option<&Clusters>) -> Result<()> {
    sparse.check()?;
    if routing.is_none() {
        return Ok(());
    }
    Error::input(
        "sparse and routing exclude one another: a routed collection looks at a few clusters alone, and sparse at all rows.",
    )
}

/// With a seed.
pub(super) fn seeded(multi: Muvera) -> Result<Muvera> {
    let drawn = || Ok::<_, Error>(u64::from_le_bytes(random()?) & MAX_SEED);
    Ok(Muvera { seed: Some(multi.seed.map_or_else(drawn, Ok)?), ..multi })
}

fn check_multi(face: Face, multi: &Muvera, choices: &Choices, spec: &IndexSpec) -> Result<()> {
    multi.check()?;
    if spec.metric() != Metric::InnerProduct {
        return Error::input(format!(
            "rows of many vectors are ranked by inner products: multi is for metric {}, got {}.",
            face.quoted("ip"),
            face.quoted(spec.metric().as_str())
        ));
    }
    if multi.dimension as usize != spec.dimension() {
        return Error::input(format!(
            "the vector that is made of many has {} numbers, and dimension is {}. Leave the dimension out.",
            multi.dimension,
            spec.dimension()
        ));
    }
    if choices.routing.is_some() {
        return Error::input(
            "multi and routing exclude one another: clusters are made of single vectors.",
        );
    }
    if choices.originals == Some(false) {
        return Error::input(
            "multi ranks by vectors as they were put in, so that originals can't be left out.",
        );
    }
    Ok(())
}

fn check_center(face: Face, center: &[f32], spec: &IndexSpec) -> Result<()> {
    if center.is_empty() {
        return Ok(());
    }
    if spec.metric() != Metric::L2 || spec.mode() == Mode::Open {
        return Error::input(format!(
            "center is for metric {} in sealed modes, whose distances it leaves as they are; got metric {}, mode {}. Leave it out.",
            face.quoted("l2"),
            face.quoted(spec.metric().as_str()),
            face.quoted(spec.mode().as_str())
        ));
    }
    if center.len() != spec.dimension() || center.iter().any(|x| !x.is_finite()) {
        return Error::input(format!(
            "center must be one vector of {} finite numbers, got {}.",
            spec.dimension(),
            if center.len() == spec.dimension() {
                "others".to_owned()
            } else {
                center.len().to_string()
            }
        ));
    }
    Ok(())
}

/// In mode `open` whoever keeps the bytes reads them: the name does.
pub(super) fn to_save(function: Option<&str>, mode: Mode) -> Result<Option<Box<RawValue>>> {
    let Some(function) = function else { return Ok(None) };
    let wrong = |error: serde_json::Error| {
        Error::Input(format!("an embedding function is described by a JSON object: {error}."))
    };
    let raw: Box<RawValue> = serde_json::from_str(function).map_err(wrong)?;
    if mode != Mode::Open {
        return Ok(Some(raw));
    }
    let mut fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(function).map_err(wrong)?;
    if let Some(config) = fields.get_mut("config") {
        *config = serde_json::Value::Object(serde_json::Map::new());
    }
    serde_json::value::to_raw_value(&fields).map(Some).map_err(wrong)
}

/// That a collection may have this name.
pub fn check_name(name: &str) -> Result<()> {
    if valid_name(name) {
        return Ok(());
    }
    let shown: String = name.chars().take(140).collect();
    Error::input(format!(
        "a collection's name has 1 to 128 characters from a-z A-Z 0-9 . _ - and starts and ends with a letter or digit, without \"..\"; got \
         {shown:?}."
    ))
}

pub(super) fn check_fields(names: &[String]) -> Result<()> {
    for (i, one) in names.iter().enumerate() {
        if one.is_empty() || one.starts_with('$') {
            return Error::input(format!(
                "filterable holds {one:?}; field names are texts that are not empty, without leading \"$\"."
            ));
        }
        if names[..i].contains(one) {
            return Error::input(format!("filterable names a field twice: {}.", names.join(", ")));
        }
    }
    Ok(())
}
