//! Adds steps that refresh registers to a circuit deeper than a bootstrapping's levels, and says what they take. The key holder
//! runs it, without a key.

use super::circuit::{Circuit, Step};
use super::reach::reaches;
use super::reference::reference;
use super::refresh_search::{Node, computed_alike, search};
use super::tolerance::{Asked, inexact};
use super::trial::Trial;
use crate::error::{Error, Result};
use crate::refusal::Refusal;
use ciphervec_he::ckks::{BootstrapSpec, Bootstrapper, Calibration, LookupTable, Sign};
use std::sync::{Arc, Mutex, PoisonError};

/// What numbers may be over 1 and be refreshed all the same: as much more of them is lost.
const ONE: f64 = 1.0 + 1.0 / (1u64 << 10) as f64;
/// Numbers that are over 1 by as many bits are not refreshed: the factor that would bring them back is no step's.
const TOO_FAR_OVER: u32 = 53;
/// What numbers that are refreshed may be over the error of a refresh.
const MARGIN: f64 = 1.1;
/// Most cleanings of integers before a table: the second squares what the first has squared.
const MOST_CLEANINGS: usize = 2;
/// Levels that are kept back, one after the other, where a trial takes more than was counted.
const KEPT_BACK: usize = 3;
/// What late stages of signs are built for, in errors of a refresh: more where what the stages before
/// them add is more.
const LATE: [f64; 3] = [1.0, 8.0, 64.0];

/// A circuit whose registers are refreshed where levels end.
#[derive(Clone, Debug)]
pub struct Refreshed {
    /// With steps that refresh.
    pub circuit: Circuit,
    /// For each of its steps that of the circuit it was made of.
    pub origins: Vec<usize>,
    /// What refreshes.
    pub bootstrapper: Arc<Bootstrapper>,
    /// Whether it is known that fewer refreshes do not serve.
    pub fewest: bool,
    /// Milliseconds of one refresh on one thread.
    pub milliseconds: f64,
}

/// The sets that are made for refreshing: 3 levels in a ring of degree 2^15, 10 in one of 2^16, 10 there
/// at a scale that tells numbers apart which a narrower one does not, with wider keys, and 12 refreshed
/// twice, with eight bits more of precision.
pub(super) fn specs() -> [BootstrapSpec; 4] {
    let wide = BootstrapSpec::degree_65536();
    let fine = BootstrapSpec {
        scale_bits: 46,
        slots_to_coefficients_bits: 42,
        reduction_bits: 49,
        doublings: 0,
        coefficients_to_slots_bits: 49,
        special_primes: 9,
        digits: 3,
        ..wide
    };
    [BootstrapSpec::degree_32768(), wide, fine, BootstrapSpec::degree_65536_precise()]
}

/// The bootstrapper of a set, which this process keeps: its matrices take a second or more to make.
pub(super) fn kept(spec: BootstrapSpec) -> Result<Arc<Bootstrapper>> {
    static KEPT: Mutex<Vec<Arc<Bootstrapper>>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept.iter().find(|one| *one.spec() == spec) {
        return Ok(found.clone());
    }
    let made = Arc::new(Bootstrapper::new(spec)?);
    if specs().contains(&spec) {
        kept.push(made.clone());
    }
    Ok(made)
}

impl Refreshed {
    /// The circuit with the fewest refreshes, and what a trial of it says. Where integers get too far
    /// off from table to table, they are cleaned before they are looked up.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(
        circuit: &Circuit,
        asked: &Asked<'_>,
        bootstrapper: Arc<Bootstrapper>,
    ) -> core::result::Result<(Self, Trial), Refusal> {
        let found = Self::uncleaned(circuit, asked, bootstrapper.clone());
        if found.is_ok() || circuit.tables.is_empty() {
            return found;
        }
        let levels = bootstrapper.spec().levels;
        for cleanings in 1..=MOST_CLEANINGS {
            let tables = circuit.tables.iter().map(|table| {
                let cleaned = table.clone().with_cleanings(cleanings)?;
                Ok(if cleaned.levels() > levels { table.clone() } else { cleaned })
            });
            let tables: Vec<LookupTable> = tables.collect::<Result<_>>()?;
            if tables == circuit.tables {
                break;
            }
            let cleaned = Circuit { tables, ..circuit.clone() };
            let cleaned = Self::uncleaned(&cleaned, asked, bootstrapper.clone());
            if cleaned.is_ok() {
                return cleaned;
            }
        }
        found
    }

    /// [`Self::of`] with tables as they are.
    fn uncleaned(
        circuit: &Circuit,
        asked: &Asked<'_>,
        bootstrapper: Arc<Bootstrapper>,
    ) -> core::result::Result<(Self, Trial), Refusal> {
        circuit.check()?;
        let most = bootstrapper.plan()?.slots;
        if circuit.slots > most {
            return Err(Refusal::Slots { slots: circuit.slots, most: most as u64 });
        }
        let calibration = reference(bootstrapper.params().spec().log_degree);
        let levels = bootstrapper.spec().levels;
        let mut why = None;
        for top in (1..=levels).rev().take(KEPT_BACK) {
            for times in LATE {
                match attempt(circuit, asked, &bootstrapper, (top, times), &calibration)? {
                    Attempt::Serves(found) => return Ok(*found),
                    Attempt::Refused(reason) => return Err(reason),
                    Attempt::TooNoisy(reason) => why = why.or(Some(reason)),
                    Attempt::TooDeep => break,
                }
            }
            if let Some(why) = why {
                return Err(why);
            }
        }
        Err(Refusal::FarApart { levels })
    }
}

/// What comes of trying a circuit out with refreshes.
enum Attempt {
    Serves(Box<(Refreshed, Trial)>),
    /// With a level kept back it may serve.
    TooDeep,
    /// With signs that are built for more it may serve.
    TooNoisy(Refusal),
    Refused(Refusal),
}

/// A circuit whose registers are refreshed so that `top` levels last, with late stages of signs that
/// are built for so many `times` the errors of a refresh.
fn attempt(
    circuit: &Circuit,
    asked: &Asked<'_>,
    bootstrapper: &Arc<Bootstrapper>,
    (top, times): (usize, f64),
    calibration: &Calibration,
) -> Result<Attempt> {
    let levels = bootstrapper.spec().levels;
    let late = MARGIN * bootstrapper.sign_noise();
    let (split, parts) = split_signs(&tuned(circuit, top, times * late)?);
    let reach = reaches(&split)?;
    let mut nodes = nodes(&split, &reach);
    hold_back(&split, &mut nodes, late);
    let Some(chosen) = search(&nodes, &computed_alike(&split), top) else {
        return Ok(Attempt::Refused(too_deep(&nodes, levels)));
    };
    let (circuit, steps) = insert(&split, &reach, &chosen.refreshed);
    let tried = Trial::served(&circuit, bootstrapper)
        .and_then(|()| Trial::refreshing(&circuit, bootstrapper, calibration, asked.failure));
    let trial = match tried {
        Ok(trial) => trial,
        Err(Error::Scheme(ciphervec_he::Error::Level { .. })) if top > 1 => {
            return Ok(Attempt::TooDeep);
        }
        Err(
            error @ Error::Scheme(
                ciphervec_he::Error::Range { .. } | ciphervec_he::Error::TooNoisy { .. },
            ),
        ) => return Ok(Attempt::TooNoisy(error.into())),
        Err(error) => return Ok(Attempt::Refused(error.into())),
    };
    if let Some(reason) = inexact(&circuit, asked.allowed, &trial.outputs) {
        return Ok(Attempt::Refused(reason));
    }
    let refreshes = circuit.refreshes() + circuit.look_ups();
    let bits = -bootstrapper.plan()?.failure_log2 - (refreshes.max(1) as f64).log2();
    if bits < f64::from(asked.failure) {
        let reason = Refusal::Chance { refreshes, bits, asked: asked.failure };
        return Ok(Attempt::Refused(reason));
    }
    let milliseconds = bootstrapper.work()?.milliseconds(calibration);
    let origins = steps.into_iter().map(|step| parts[step]).collect();
    let fewest = chosen.fewest && top == levels;
    let bootstrapper = bootstrapper.clone();
    let found = Refreshed { circuit, origins, bootstrapper, fewest, milliseconds };
    Ok(Attempt::Serves(Box::new((found, trial))))
}

/// The circuit with signs that can be refreshed: those of numbers too close to 0 for that take them
/// further away first, in levels that are left of `top` when they begin.
fn tuned(circuit: &Circuit, top: usize, late: f64) -> Result<Circuit> {
    let stands = |sign: &Sign| {
        let after_first = usize::from(sign.is_graded());
        sign.stands().iter().skip(after_first).all(|&one| one >= late)
    };
    if circuit.signs.iter().all(stands) {
        return Ok(circuit.clone());
    }
    let nodes = nodes(circuit, &vec![1.0; circuit.input_registers() + circuit.steps.len()]);
    let mut taken: Vec<usize> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let before = node.operands.iter().map(|&operand| taken[operand]).max().unwrap_or(0);
        taken.push(if node.anew { 0 } else { before } + node.depth);
    }
    let mut signs = circuit.signs.clone();
    for (index, sign) in circuit.signs.iter().enumerate() {
        let uses = circuit.steps.iter().filter_map(|step| match *step {
            Step::Sign(a, which) if which as usize == index => Some(taken[a as usize]),
            _ => None,
        });
        let left = top.saturating_sub(uses.max().unwrap_or(0));
        if stands(sign) {
            continue;
        }
        // The fewest early levels of those that lead to the shallowest: stages add errors of their own,
        // which the early ones have no room for. Where none is found, the trial says what is missing.
        let found = (1..=left).filter_map(|levels| {
            Sign::refreshed(sign.gap(), sign.alpha(), (levels, sign.noise()), late).ok()
        });
        if let Some(found) = found.min_by_key(Sign::depth) {
            signs[index] = found;
        }
    }
    Ok(Circuit { signs, ..circuit.clone() })
}

/// Keeps registers that stages of signs come from unrefreshed which have to stand less than `late`: they
/// are told apart more finely than a refresh leaves them.
fn hold_back(circuit: &Circuit, nodes: &mut [Node], late: f64) {
    let inputs = circuit.input_registers();
    let mut held = vec![false; nodes.len()];
    for (index, step) in circuit.steps.iter().enumerate().rev() {
        if let Step::SignStage(a, which, stage) = *step {
            held[a as usize] |= circuit.signs[which as usize].stands()[stage as usize] < late;
        }
        // What is looked up is as precise as that leaves it.
        if held[inputs + index] && !matches!(step, Step::LookUp(..)) {
            step.operands().for_each(|operand| held[operand as usize] = true);
        }
    }
    for (node, held) in nodes.iter_mut().zip(held) {
        if held {
            node.reserve = usize::MAX;
        }
    }
}

/// The stages of signs as steps of their own, and for each step that it is part of.
fn split_signs(circuit: &Circuit) -> (Circuit, Vec<usize>) {
    let inputs = circuit.input_registers();
    let mut places: Vec<u32> = (0..inputs as u32).collect();
    let (mut steps, mut parts) = (Vec::new(), Vec::new());
    for (index, step) in circuit.steps.iter().enumerate() {
        let step = step.reading(|register| places[register as usize]);
        let Step::Sign(a, sign) = step else {
            steps.push(step);
            parts.push(index);
            places.push((inputs + steps.len() - 1) as u32);
            continue;
        };
        let mut last = a;
        for stage in 0..circuit.signs[sign as usize].stages().len() {
            steps.push(Step::SignStage(last, sign, stage as u32));
            parts.push(index);
            last = (inputs + steps.len() - 1) as u32;
        }
        places.push(last);
    }
    (sending(circuit, steps, &places), parts)
}

/// A circuit of these steps, whose outputs are where `places` has them.
fn sending(circuit: &Circuit, steps: Vec<Step>, places: &[u32]) -> Circuit {
    let mut changed = Circuit { steps, ..circuit.clone() };
    for output in &mut changed.outputs {
        output.registers.iter_mut().for_each(|one| *one = places[*one as usize]);
    }
    changed
}

/// Levels that the tables take which are looked up with each step, where it looks one up.
fn looked_up(circuit: &Circuit) -> Vec<usize> {
    let mut found = Vec::with_capacity(circuit.steps.len());
    while found.len() < circuit.steps.len() {
        let together = circuit.together(found.len());
        let steps = &circuit.steps[found.len()..found.len() + together];
        let levels = steps.iter().map(|step| match *step {
            Step::LookUp(_, table) => circuit.tables[table as usize].levels(),
            _ => 0,
        });
        let most = levels.max().unwrap_or(0);
        found.extend((0..together).map(|_| most));
    }
    found
}

/// What every register takes.
fn nodes(circuit: &Circuit, reach: &[f64]) -> Vec<Node> {
    let inputs = circuit.input_registers();
    let mut found = vec![Node { count: 1, ..Node::default() }; inputs];
    let (looked_up, public) = (looked_up(circuit), circuit.public());
    for (index, step) in circuit.steps.iter().enumerate() {
        let depth = match *step {
            // In the clear there are no levels.
            _ if public[inputs + index] => 0,
            Step::MultiplyNumber(..)
            | Step::MultiplyVector(..)
            | Step::Multiply(..)
            | Step::Square(_) => 1,
            Step::Polynomial(_, which) => circuit.polynomials[which as usize].depth(),
            Step::Sign(_, which) => circuit.signs[which as usize].depth(),
            Step::SignStage(_, which, stage) => {
                circuit.signs[which as usize].stages()[stage as usize].depth()
            }
            Step::LookUp(..) => looked_up[index],
            _ => 0,
        };
        let loss = bits_over(reach[inputs + index]);
        found.push(Node {
            operands: step.operands().map(|register| register as usize).collect(),
            depth,
            anew: matches!(step, Step::LookUp(..)),
            // Numbers over 1 are scaled down first.
            reserve: if loss < TOO_FAR_OVER { usize::from(loss > 0) } else { usize::MAX },
            loss,
            count: 1,
        });
    }
    found
}

/// By how many bits numbers are over 1.
fn bits_over(reach: f64) -> u32 {
    if reach <= ONE { 0 } else { reach.log2().ceil() as u32 }
}

fn too_deep(nodes: &[Node], levels: usize) -> Refusal {
    match nodes.iter().map(|node| node.depth).max() {
        Some(needed) if needed > levels => Refusal::LongStep { needed, levels },
        _ => Refusal::OverOne { levels },
    }
}

/// The circuit with refreshes after the registers that are chosen, and for each step that it was made
/// of.
fn insert(circuit: &Circuit, reach: &[f64], refreshed: &[bool]) -> (Circuit, Vec<usize>) {
    let inputs = circuit.input_registers();
    let mut places: Vec<u32> = (0..inputs as u32).collect();
    let (mut steps, mut origins) = (Vec::new(), Vec::new());
    while places.len() < inputs + circuit.steps.len() {
        let first = places.len() - inputs;
        let mut add = |index: usize, step: Step| {
            steps.push(step);
            origins.push(index);
            (inputs + steps.len() - 1) as u32
        };
        // What is done together stays so: refreshes come after all of it.
        let together = first..first + circuit.together(first);
        for index in together.clone() {
            let step = circuit.steps[index].reading(|register| places[register as usize]);
            places.push(add(index, step));
        }
        for index in together.filter(|index| refreshed[inputs + index]) {
            let register = inputs + index;
            let mut last = places[register];
            let bits = bits_over(reach[register]);
            if bits > 0 {
                last = add(index, Step::MultiplyNumber(last, f64::exp2(-f64::from(bits))));
            }
            last = add(index, Step::Bound(last, 1.0));
            last = add(index, Step::Refresh(last));
            if bits > 0 {
                last = add(index, Step::MultiplyInteger(last, 1 << bits));
                last = add(index, Step::Bound(last, reach[register]));
            }
            places[register] = last;
        }
    }
    (sending(circuit, steps, &places), origins)
}
