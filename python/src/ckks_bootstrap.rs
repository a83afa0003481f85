//! CKKS bootstrapping for Python: the owner makes its keys and writes them to files; the server reads them and
//! refreshes spent arrays.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use ciphervec_he_secret::ckks::{BootstrapSpec, Bootstrapper, BootstrappingKeys};
use ciphervec_he_secret::wire::{HEADER_LEN, Incoming, Kind, VERSION};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::ckks::{Outcome, PyCkksServer, work};
use crate::ckks_array::PyCkksArray;
use crate::ckks_owner::PyCkksOwner;
use crate::errors::{CorruptData, InvalidInput, Raise, StorageError};
use crate::runtime;

/// Which slots a set is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slots {
    /// All of the standard ring.
    All,
    /// Fewer than it has.
    Few,
    /// All of the conjugate-invariant ring, of real numbers alone and twice as many.
    Real,
}

/// A set by what callers call it.
struct Named {
    log_degree: u32,
    slots: Slots,
    precise: bool,
    spec: fn() -> BootstrapSpec,
}

/// What stands for a set: log2 of its degree, its slots, whether it is precise.
type Name = (u32, usize, bool);

/// The sets there are.
const SETS: [Named; 6] = [
    Named { log_degree: 15, slots: Slots::All, precise: false, spec: BootstrapSpec::degree_32768 },
    Named {
        log_degree: 15,
        slots: Slots::Few,
        precise: false,
        spec: BootstrapSpec::degree_32768_few_slots,
    },
    Named {
        log_degree: 15,
        slots: Slots::Real,
        precise: false,
        spec: BootstrapSpec::degree_32768_real_slots,
    },
    Named { log_degree: 16, slots: Slots::All, precise: false, spec: BootstrapSpec::degree_65536 },
    Named {
        log_degree: 16,
        slots: Slots::Real,
        precise: false,
        spec: BootstrapSpec::degree_65536_real_slots,
    },
    Named {
        log_degree: 16,
        slots: Slots::All,
        precise: true,
        spec: BootstrapSpec::degree_65536_precise,
    },
];

/// The least that a set for few slots is laid out for: fewer take no less work.
const FEWEST_SLOTS: usize = 8;

impl Named {
    /// The most slots.
    fn slots(&self) -> usize {
        1 << (self.spec)().log_slots
    }

    /// The name for so many slots, or for the most.
    fn name(&self, slots: Option<usize>) -> Name {
        let few = slots.filter(|_| self.slots == Slots::Few);
        let slots = few.map_or(self.slots(), |few| few.next_power_of_two().max(FEWEST_SLOTS));
        (self.log_degree, slots, self.precise)
    }

    /// How it is asked for.
    fn arguments(&self) -> String {
        let slots = (self.slots != Slots::All).then(|| self.slots());
        arguments(self.log_degree, slots, self.precise)
    }

    /// Whether it is the one for so many slots, all that the standard ring has unless they are given.
    fn takes(&self, slots: Option<usize>) -> bool {
        match (self.slots, slots) {
            (kind, None) => kind == Slots::All,
            (Slots::Few, Some(slots)) => (1..=self.slots()).contains(&slots),
            (_, Some(slots)) => slots == self.slots(),
        }
    }

    /// The specification for so many slots.
    fn spec(&self, slots: Option<usize>) -> BootstrapSpec {
        BootstrapSpec { log_slots: self.name(slots).1.ilog2(), ..(self.spec)() }
    }

    fn of(log_degree: u32, slots: Option<usize>, precise: bool) -> PyResult<&'static Self> {
        let found = SETS
            .iter()
            .find(|set| (set.log_degree, set.precise) == (log_degree, precise) && set.takes(slots));
        if let Some(set) = found {
            return Ok(set);
        }
        if SETS.iter().all(|set| set.log_degree != log_degree) {
            return Err(InvalidInput::new_err(format!(
                "log_n must be 15 or 16, got {log_degree}: no smaller ring has room for the levels that \
                 bootstrapping takes at 128 bits of security"
            )));
        }
        let there = SETS.iter().map(Self::arguments).collect::<Vec<_>>();
        let asked = arguments(log_degree, slots, precise);
        Err(InvalidInput::new_err(format!(
            "no set for bootstrapping has {asked}; there are: {} (slots=512: at most so many)",
            there.join("; ")
        )))
    }
}

/// What names a set in a call.
fn arguments(log_degree: u32, slots: Option<usize>, precise: bool) -> String {
    let slots = slots.map(|slots| format!(", slots={slots}")).unwrap_or_default();
    format!("log_n={log_degree}{slots}{}", if precise { ", precise=True" } else { "" })
}

/// A parameter set that arrays are refreshed under, and all that is computed from it.
#[pyclass(name = "CkksBootstrapper", module = "ciphervec._native", frozen)]
pub struct PyCkksBootstrapper {
    made: Arc<Bootstrapper>,
    set: &'static Named,
}

#[pymethods]
impl PyCkksBootstrapper {
    #[new]
    #[pyo3(signature = (log_degree, slots = None, precise = false))]
    fn new(py: Python<'_>, log_degree: u32, slots: Option<usize>, precise: bool) -> PyResult<Self> {
        let set = Named::of(log_degree, slots, precise)?;
        let made = work(py, || Ok(Bootstrapper::new(set.spec(slots))?))?;
        Ok(Self { made: Arc::new(made), set })
    }

    /// The name of the set that is asked for so.
    #[staticmethod]
    fn named(log_degree: u32, slots: Option<usize>, precise: bool) -> PyResult<Name> {
        Ok(Named::of(log_degree, slots, precise)?.name(slots))
    }

    /// The name of the set that the parameters of a context are, if they are one: for few slots that for the most.
    #[staticmethod]
    fn named_by(server: &PyCkksServer) -> Option<Name> {
        let set = SETS.iter().find(|set| (set.spec)().describes(server.0.params()));
        set.map(|set| set.name(None))
    }

    /// The figures of the plan, and the sizes of the set.
    fn plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let plan = self.made.plan().map_err(Raise::raise)?;
        let params = self.made.params();
        let out = PyDict::new(py);
        out.set_item("log_n", self.made.spec().log_degree)?;
        out.set_item("slots", plan.slots)?;
        out.set_item("ring", params.ring().as_str())?;
        out.set_item("precise", self.set.precise)?;
        out.set_item("level", plan.level)?;
        out.set_item("lowest_level", plan.lowest_level)?;
        out.set_item("levels_left", plan.levels_left)?;
        out.set_item("precision_bits", plan.precision_bits)?;
        out.set_item("bound_bits", plan.bound_bits)?;
        out.set_item("failure_log2", plan.failure_log2)?;
        out.set_item("key_bytes", plan.key_bytes)?;
        out.set_item("diagonal_bytes", plan.diagonal_bytes)?;
        out.set_item("rotations", plan.rotations)?;
        out.set_item("relinearisations", plan.relinearisations)?;
        out.set_item("reductions", plan.reductions)?;
        out.set_item("iterations", plan.iterations)?;
        out.set_item("levels", params.max_level())?;
        out.set_item("log_modulus", params.log_key_modulus())?;
        out.set_item("scale_bits", self.made.spec().scale_bits)?;
        Ok(out)
    }

    /// A fresh key under this set: with keys for products, for these rotations and for sums over so many slots.
    fn owner(&self, py: Python<'_>, rotations: Vec<i64>, sums: usize) -> PyResult<PyCkksOwner> {
        PyCkksOwner::for_bootstrapping(py, &self.made, rotations, sums)
    }

    /// The keys that `owner` lets others refresh with; `progress(made, all)` is called after each.
    #[pyo3(signature = (owner, progress = None))]
    fn generate(
        &self,
        py: Python<'_>,
        owner: &PyCkksOwner,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyCkksBootstrappingKeys> {
        let mut raised = None;
        let mut watch = |made: usize, all: usize| {
            let Some(progress) = &progress else { return };
            if raised.is_none() {
                raised = Python::attach(|py| progress.call1(py, (made, all)).err());
            }
        };
        let keys = work(py, || owner.client().bootstrapping_keys(&self.made, &mut watch))?;
        match raised {
            Some(error) => Err(error),
            None => Ok(self.with(keys)),
        }
    }

    /// Reads what [`PyCkksBootstrappingKeys::write`] wrote.
    fn read(&self, py: Python<'_>, path: &str) -> PyResult<PyCkksBootstrappingKeys> {
        runtime::detached(py, || {
            let mut file = opened(path)?;
            let keys = BootstrappingKeys::read_from(self.made.params(), &mut file);
            let keys = keys.and_then(|keys| self.made.check_keys(&keys).map(|()| keys));
            keys.map_err(|error| beside(path, &error)).map(|keys| self.with(keys))
        })
    }

    /// The array with the levels of a refreshed one.
    fn refresh(
        &self,
        py: Python<'_>,
        array: &PyCkksArray,
        keys: &PyCkksBootstrappingKeys,
    ) -> PyResult<PyCkksArray> {
        let mine = self.made.params().param_id();
        let theirs = array.0.params().map_or(mine, |params| params.param_id());
        if mine != theirs {
            let name = self.set.arguments();
            return Err(InvalidInput::new_err(format!(
                "the array was encrypted under parameters {theirs}, the keys refresh those of {mine}: encrypt under a \
                 context of Context.for_bootstrapping({name})"
            )));
        }
        work(py, || array.0.refresh(&self.made, &keys.keys)).map(PyCkksArray)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("make it again from the name of its set"))
    }
}

impl PyCkksBootstrapper {
    fn with(&self, keys: BootstrappingKeys) -> PyCkksBootstrappingKeys {
        PyCkksBootstrappingKeys { keys }
    }
}

/// What refreshes the arrays of one key.
#[pyclass(name = "CkksBootstrappingKeys", module = "ciphervec._native", frozen)]
pub struct PyCkksBootstrappingKeys {
    keys: BootstrappingKeys,
}

#[pymethods]
impl PyCkksBootstrappingKeys {
    #[getter]
    fn key_id(&self) -> String {
        self.keys.key_id().to_string()
    }

    /// Bytes as written.
    #[getter]
    fn bytes(&self) -> usize {
        self.keys.bytes()
    }

    /// Bytes in memory, where masks are expanded.
    #[getter]
    fn memory(&self) -> usize {
        self.keys.memory()
    }

    /// Writes the keys to a new file, a key at a time, and sees them to the disk.
    fn write(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        runtime::detached(py, || {
            let failed = |error: std::io::Error| StorageError::new_err(format!("{path}: {error}"));
            let mut file = File::create_new(path).map_err(failed)?;
            self.keys.write_to(&mut file).map_err(|error| beside(path, &error))?;
            file.sync_all().map_err(failed)
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("keys are gigabytes; save() them to a file and load() them there"))
    }
}

/// The file, which is as long as its header promises.
fn opened(path: &str) -> PyResult<File> {
    let failed = |error: std::io::Error| {
        StorageError::new_err(format!("cannot read bootstrapping keys from {path}: {error}"))
    };
    let mut file = File::open(path).map_err(failed)?;
    let actual = file.metadata().map_err(failed)?.len();
    let mut header = [0; HEADER_LEN];
    if actual < HEADER_LEN as u64 {
        return Err(CorruptData::new_err(format!(
            "{path} has {actual} bytes, bootstrapping keys have at least {HEADER_LEN}; copy the file again"
        )));
    }
    file.read_exact(&mut header).map_err(failed)?;
    let incoming = Incoming::new(Kind::BootstrappingKeys, VERSION, &header);
    let expected =
        incoming.map_err(|error| beside(path, &error))?.left().saturating_add(HEADER_LEN as u64);
    if actual == expected {
        return File::open(path).map_err(failed);
    }
    let what = if actual < expected { "truncated" } else { "longer than what was written" };
    Err(CorruptData::new_err(format!(
        "{path} is {what}: {expected} bytes of bootstrapping keys expected, the file has {actual}; copy it again, or have \
         the owner make keys anew"
    )))
}

/// The error with the file's name before it.
fn beside(path: &str, error: &ciphervec_he_secret::Error) -> PyErr {
    let raised = error.clone().raise();
    Python::attach(|py| {
        let message = format!("{path}: {}", raised.value(py));
        PyErr::from_type(raised.get_type(py), message)
    })
}

impl PyCkksOwner {
    fn for_bootstrapping(
        py: Python<'_>,
        bootstrapper: &Bootstrapper,
        rotations: Vec<i64>,
        sums: usize,
    ) -> PyResult<Self> {
        let make = || -> Outcome<_> {
            let width = sums.min(bootstrapper.params().max_slots()).next_power_of_two();
            ciphervec_owner::similarity::ckks::Client::for_bootstrapping(
                bootstrapper,
                rotations,
                width,
            )
        };
        work(py, make).map(Self::of)
    }
}
