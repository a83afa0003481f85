//! Plans as frames that both sides read. Nothing in them is secret.
//!
//! Numbers are little-endian, a list is its length as u32 and its items, a name is its length as u8
//! and UTF-8, a real number is an f64.
//!
//! - a plan: `parameters, a list of bytes | key sets | log2 of slots u8 | inputs | constants |
//!   polynomials | signs | steps | outputs`, and, as far as there are any, `counts | coefficients |
//!   failure u8 | digits | public inputs | what noise decides`;
//! - a key set: `level u8 | relinearise u8 | list of i64`;
//! - an array: `name | list of u32 | step, low, high f64`; an input goes on with a list of views
//!   (`registers u32 | unit f64 | placement`), an output with `unit f64 | list of registers u32 |
//!   placement | decoding u8`;
//! - a placement: a list of blocks, `element u64 | place u64 | list of (count u32, element i64,
//!   place i64)`;
//! - a constant: a list of f64; a polynomial: `basis u8 | low, high f64 | list of f64`; a sign: `gap,
//!   alpha, noise f64`, the noise of a graded one below 0;
//! - a step: what [`super::step_bytes`] writes; counts and what follows: what [`super::view_bytes`] does.
//!
//! Version 2 is that of plans whose steps refresh registers: before all of this stands what
//! [`super::refreshing`] writes, and a sign goes on with `levels, noise f64` of its early stages,
//! zeros where there are none. Version 3 is that of those among them whose steps look up tables, or
//! whose set is only written in full, as it then is: after the signs stands a list of tables,
//! `cleanings u8 | list of f64`.
//!
//! A name has 1 to 64 bytes. A placement's loops are a nest over elements, row by row, and places, `register · slots + slot`; a
//! basis is 0 powers or 1 Chebyshev, low and high being zero for powers; a decoding is 0 numbers, 1 booleans, 2 the place of the
//! one that is true, 3 the place of the largest. `failure` is log2 of one over the chance that an answer is wrong or refused, 0
//! if not stated. Rotations ascend from 1 to slots − 1; constants have a power of two of numbers, at most the slots; the last
//! coefficient of a polynomial is not zero. Registers are numbered from those of inputs on; each step makes the next. The plan id
//! is the first half of BLAKE3 of the payload.

use super::arrays::{Decoding, Input, MAX_DIMENSIONS, MAX_NAME, Output, View};
use super::circuit::{
    Circuit, MAX_CONSTANTS, MAX_DEGREE, MAX_PARTS, MAX_REGISTERS, MAX_SIGNS, MAX_SLOTS,
};
use super::list_bytes::{f64_of, flag, items, length, list, real};
use super::look_up::MAX_TABLES;
use super::numbers::Numbers;
use super::placement::{Block, Domain, Loop, MAX_BLOCKS, MAX_LOOPS, Placement};
use super::plan::{Ground, KeySet, MAX_KEY_SETS, MAX_KEYS, Plan, PlanId, Said};
use super::reading::Reading;
use super::refreshed::kept;
use super::refreshing::{diagonals, in_full, read_spec, write_spec};
use super::step_bytes::{STEP_BYTES, read_step, step_bytes};
use super::view_bytes::{read_kinds, write_kinds};
use crate::error::Result;
use ciphervec_he::ckks::{Basis, BootstrapSpec, LookupTable, Params, ParamsSpec, Polynomial, Sign};
use ciphervec_he::wire::{self, HEADER_LEN, Header, KeyId, Kind, Reader, Scheme};

const WHAT: &str = "a program's plan";
/// The version of plans that refresh registers; others are of version 1.
const REFRESHING: u16 = 2;
/// The version of those that look tables up, or that refresh with a set that is written in full.
const LOOKING_UP: u16 = 3;

impl Plan {
    /// The plan, framed. Nothing in it is secret.
    pub fn to_bytes(&self) -> Vec<u8> {
        let params = self.params().param_id();
        let header =
            Header { scheme: Scheme::Ckks, kind: Kind::Program, params, key: KeyId([0; 8]) };
        let mut frame = vec![0; HEADER_LEN];
        frame.extend(self.payload());
        header.seal_version(self.version(), &mut frame);
        frame
    }

    /// The least that can say what it is.
    fn version(&self) -> u16 {
        match self.bootstrapper() {
            None => wire::VERSION,
            Some(one) if self.circuit().tables.is_empty() && !in_full(one.spec()) => REFRESHING,
            Some(_) => LOOKING_UP,
        }
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(bootstrapper) = self.bootstrapper() {
            write_spec(bootstrapper.spec(), self.version() >= LOOKING_UP, &mut out);
        }
        let params = self.params().to_bytes();
        length(&mut out, params.len());
        out.extend(params);
        list(&mut out, self.keys(), |out, set| {
            out.extend([set.level as u8, u8::from(set.relinearise)]);
            length(out, set.rotations.len());
            set.rotations.iter().for_each(|steps| out.extend(steps.to_le_bytes()));
        });
        write_circuit(self.circuit(), (self.version(), self.said()), &mut out);
        out
    }

    /// Reads what [`Self::to_bytes`] wrote, from anybody.
    ///
    /// # Errors
    /// Damaged or malformed bytes, parameters that are not secure, and what [`Plan::new`] refuses.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        PlanBytes::read(bytes)?.plan()
    }
}

/// Cleanings and values of a table.
type TableShape = (u8, Vec<f64>);

/// Gap, precision and noise of a sign, and the levels and the noise of its early stages.
type SignShape = [f64; 5];

/// A plan as its bytes have it: nothing was computed from it yet, so that whoever got it from a
/// stranger can look at its sizes first.
#[derive(Debug)]
pub struct PlanBytes<'a> {
    header: Header,
    id: PlanId,
    params: &'a [u8],
    spec: ParamsSpec,
    last_bits: Option<u32>,
    refreshing: Option<BootstrapSpec>,
    keys: Vec<KeySet>,
    /// Without its signs and tables.
    circuit: Circuit,
    signs: Vec<SignShape>,
    tables: Vec<TableShape>,
    said: Said,
}

impl<'a> PlanBytes<'a> {
    /// Reads what [`Plan::to_bytes`] wrote. It takes a few times the memory of the bytes.
    ///
    /// # Errors
    /// Damaged or malformed bytes.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let (version, header, payload) = wire::open_version(Kind::Program, LOOKING_UP, bytes)?;
        let mut reader = Reader::new(WHAT, payload);
        let refreshing = match version {
            REFRESHING | LOOKING_UP => Some(read_spec(&mut reader, version == LOOKING_UP)?),
            _ => None,
        };
        let size = reader.u32()? as usize;
        let params = reader.take(size)?;
        let keys = items(&mut reader, 6, MAX_KEY_SETS, |reader| {
            let level = usize::from(reader.u8()?);
            let relinearise = flag(reader)?;
            let rotations =
                items(reader, 8, MAX_KEYS, |reader| Ok(i64::from_le_bytes(reader.array()?)))?;
            if !rotations.is_sorted_by(|a, b| a < b) {
                return Err(reader.error("rotations in ascending order expected").into());
            }
            Ok(KeySet { level, relinearise, rotations: rotations.into_iter().collect() })
        })?;
        let (mut circuit, signs, tables) = read_circuit(&mut reader, version)?;
        let said = read_kinds(&mut reader, &mut circuit)?;
        let plainer = |spec: &BootstrapSpec| tables.is_empty() && !in_full(spec);
        if version == LOOKING_UP && refreshing.as_ref().is_some_and(plainer) {
            return Err(reader.error("a plan of version 2 expected, this looks nothing up").into());
        }
        if header.key != KeyId([0; 8]) {
            return Err(reader.error("a plan names no key").into());
        }
        reader.finish()?;
        let (spec, last_bits) = match &refreshing {
            Some(refreshing) => (refreshing.params()?, None),
            None => ParamsSpec::described(params)?,
        };
        let id = PlanId::of(payload);
        Ok(PlanBytes {
            header,
            id,
            params,
            spec,
            last_bits,
            refreshing,
            keys,
            circuit,
            signs,
            tables,
            said,
        })
    }

    /// log2 of its ring degree, unchecked.
    pub fn log_degree(&self) -> u32 {
        self.spec.log_degree
    }

    /// A bound on the memory that the tables of its parameters take.
    pub fn ring_memory(&self) -> u64 {
        let once = self.refreshing.as_ref().map_or(0, diagonals);
        let looking_up = if self.tables.is_empty() { 0 } else { once };
        Params::memory(&self.spec).saturating_add(once).saturating_add(looking_up)
    }

    /// Whether its primes are those of its parameters alone, as those of every fitted plan are.
    pub fn is_regular(&self) -> bool {
        self.last_bits.is_none()
    }

    /// How many steps it has.
    pub fn steps(&self) -> usize {
        self.circuit.steps.len()
    }

    /// The plan: signs are searched for, tables are looked at, and those of its parameters are made,
    /// which takes the longest.
    ///
    /// # Errors
    /// Parameters that are not secure, and what [`Plan::new`] refuses.
    pub fn plan(self) -> Result<Plan> {
        let signs = self.signs.into_iter();
        let signs = signs.map(|[gap, alpha, noise, levels, early]| match levels {
            0.0 if noise < 0.0 => Ok(Sign::graded(gap, alpha, -noise)?),
            0.0 => Ok(Sign::with_noise(gap, alpha, noise)?),
            _ => Ok(Sign::refreshed(gap, alpha, (levels as usize, early), noise)?),
        });
        let tables = self.tables.into_iter().map(|(cleanings, values)| {
            Ok(LookupTable::new(&values)?.with_cleanings(usize::from(cleanings))?)
        });
        let tables = tables.collect::<Result<_>>()?;
        let circuit = Circuit { signs: signs.collect::<Result<_>>()?, tables, ..self.circuit };
        let ground = match self.refreshing {
            Some(refreshing) => Ground::Refreshed(kept(refreshing)?),
            None => Ground::Levels(Params::from_bytes(self.params)?),
        };
        let params = match &ground {
            Ground::Levels(params) => params,
            Ground::Refreshed(bootstrapper) => bootstrapper.params(),
        };
        let named = self.header.scheme == Scheme::Ckks && self.header.params == params.param_id();
        // Parameters of version 1 may be frames of an older version.
        let same = self.refreshing.is_none() || params.to_bytes() == self.params;
        if !named || !same {
            let reader = Reader::new(WHAT, self.params);
            return Err(reader.error("a header that names its parameters expected").into());
        }
        Ok(Plan::named(circuit, ground, self.keys, self.id)?.saying(self.said))
    }
}

fn write_circuit(circuit: &Circuit, (version, said): (u16, Said), out: &mut Vec<u8>) {
    out.push(circuit.slots.ilog2() as u8);
    list(out, &circuit.inputs, |out, input| {
        write_array(out, (&input.name, &input.shape, &input.numbers));
        list(out, &input.views, |out, view| {
            out.extend(view.registers.to_le_bytes());
            real(out, &view.unit);
            write_placement(out, &view.placement);
        });
    });
    list(out, &circuit.constants, |out, values| list(out, values, real));
    list(out, &circuit.polynomials, |out, polynomial| {
        let (basis, low, high) = match polynomial.basis() {
            Basis::Power => (0, 0.0, 0.0),
            Basis::Chebyshev { low, high } => (1, low, high),
        };
        out.push(basis);
        real(out, &low);
        real(out, &high);
        list(out, polynomial.coefficients(), real);
    });
    list(out, &circuit.signs, |out, sign| {
        let noise = if sign.is_graded() { -sign.noise() } else { sign.noise() };
        [sign.gap(), sign.alpha(), noise].iter().for_each(|x| real(out, x));
        if version >= REFRESHING {
            let (levels, noise) = sign.early().unwrap_or((0, 0.0));
            [levels as f64, noise].iter().for_each(|x| real(out, x));
        }
    });
    if version >= LOOKING_UP {
        list(out, &circuit.tables, |out, table| {
            out.push(table.cleanings() as u8);
            list(out, table.values(), real);
        });
    }
    list(out, &circuit.steps, |out, step| out.extend(step_bytes(*step)));
    list(out, &circuit.outputs, |out, output| {
        write_array(out, (&output.name, &output.shape, &output.numbers));
        real(out, &output.unit);
        list(out, &output.registers, |out, register| out.extend(register.to_le_bytes()));
        write_placement(out, &output.placement);
        out.push(output.decoding as u8);
    });
    write_kinds(circuit, said, out);
}

/// A circuit without its signs and tables, and what they are to be.
fn read_circuit(
    reader: &mut Reader<'_>,
    version: u16,
) -> Result<(Circuit, Vec<SignShape>, Vec<TableShape>)> {
    let log_slots = u32::from(reader.u8()?);
    let slots = 1usize.checked_shl(log_slots).ok_or_else(|| reader.error("too many slots"))?;
    let inputs = items(reader, 33, MAX_PARTS, |reader| {
        let (name, shape, numbers) = read_array(reader)?;
        let views = items(reader, 16, MAX_REGISTERS, |reader| {
            let (registers, unit) = (reader.u32()?, f64_of(reader)?);
            let placement = read_placement(reader)?;
            Ok(View { registers, unit, reading: Reading::Numbers, placement })
        })?;
        Ok(Input { name, public: false, shape, numbers, views })
    })?;
    let constants = items(reader, 12, MAX_CONSTANTS, |reader| items(reader, 8, MAX_SLOTS, f64_of))?;
    let polynomials = items(reader, 21, MAX_PARTS, |reader| {
        let (basis, low, high) = (reader.u8()?, f64_of(reader)?, f64_of(reader)?);
        let coefficients = items(reader, 8, MAX_DEGREE + 1, f64_of)?;
        let polynomial = match basis {
            0 if low.to_bits() | high.to_bits() == 0 => Polynomial::power(&coefficients)?,
            1 => Polynomial::chebyshev(low, high, &coefficients)?,
            other => return Err(reader.error(format!("unknown basis {other}")).into()),
        };
        if polynomial.coefficients().len() != coefficients.len() {
            return Err(reader.error("a highest coefficient other than 0 expected").into());
        }
        Ok(polynomial)
    })?;
    let asked = items(reader, 24, MAX_SIGNS, |reader| {
        let mut shape = [0.0; 5];
        for one in &mut shape[..if version >= REFRESHING { 5 } else { 3 }] {
            *one = f64_of(reader)?;
        }
        if shape[3].fract() != 0.0 || !(0.0..=64.0).contains(&shape[3]) {
            return Err(reader.error("at most 64 levels of a sign's early stages expected").into());
        }
        Ok(shape)
    })?;
    let tables = match version {
        LOOKING_UP => items(reader, 5, MAX_TABLES, |reader| {
            Ok((reader.u8()?, items(reader, 8, MAX_SLOTS, f64_of)?))
        })?,
        _ => Vec::new(),
    };
    let steps = items(reader, STEP_BYTES, MAX_REGISTERS, read_step)?;
    let outputs = items(reader, 46, MAX_PARTS, |reader| {
        let (name, shape, numbers) = read_array(reader)?;
        let unit = f64_of(reader)?;
        let registers = items(reader, 4, MAX_REGISTERS, |reader| Ok(reader.u32()?))?;
        let placement = read_placement(reader)?;
        let decoding = match reader.u8()? {
            0 => Decoding::Numbers,
            1 => Decoding::Booleans,
            2 => Decoding::OneHot,
            3 => Decoding::Largest,
            4 => Decoding::Most,
            other => return Err(reader.error(format!("unknown decoding {other}")).into()),
        };
        Ok(Output { name, shape, numbers, unit, registers, placement, decoding })
    })?;
    let circuit = Circuit {
        slots,
        inputs,
        constants,
        polynomials,
        signs: Vec::new(),
        tables: Vec::new(),
        steps,
        outputs,
    };
    Ok((circuit, asked, tables))
}

type Array = (String, Vec<u32>, Numbers);

fn write_array(out: &mut Vec<u8>, (name, shape, numbers): (&str, &[u32], &Numbers)) {
    out.push(name.len() as u8);
    out.extend(name.as_bytes());
    list(out, shape, |out, extent| out.extend(extent.to_le_bytes()));
    [numbers.step, numbers.low, numbers.high].iter().for_each(|x| real(out, x));
}

fn read_array(reader: &mut Reader<'_>) -> Result<Array> {
    let size = usize::from(reader.u8()?);
    let name = String::from_utf8(reader.take(size.min(MAX_NAME + 1))?.to_vec());
    let name = name.map_err(|_| reader.error("a name in UTF-8 expected"))?;
    let shape = items(reader, 4, MAX_DIMENSIONS, |reader| Ok(reader.u32()?))?;
    let numbers = Numbers { step: f64_of(reader)?, low: f64_of(reader)?, high: f64_of(reader)? };
    Ok((name, shape, numbers))
}

fn write_placement(out: &mut Vec<u8>, placement: &Placement) {
    list(out, &placement.blocks, |out, block| {
        out.extend(block.element.to_le_bytes());
        out.extend(block.place.to_le_bytes());
        list(out, &block.loops, |out, one| {
            out.extend(one.count.to_le_bytes());
            out.extend(one.element.to_le_bytes());
            out.extend(one.place.to_le_bytes());
        });
    });
}

fn read_placement(reader: &mut Reader<'_>) -> Result<Placement> {
    let blocks = items(reader, 20, MAX_BLOCKS, |reader| {
        let (element, place) = (reader.u64()?, reader.u64()?);
        let loops = items(reader, 20, MAX_LOOPS, |reader| {
            let count = reader.u32()?;
            let [element, place] = [reader.array()?, reader.array()?].map(i64::from_le_bytes);
            Ok(Loop { count, element, place })
        })?;
        Ok(Block { element, place, loops })
    })?;
    Ok(Placement { blocks, domain: Domain::Slots })
}
