//! Finds the fewest registers of a circuit to refresh, by the levels that each takes. The key holder runs it, without a key.
//!
//! A dynamic program over the graph: register by register, for every choice of levels that those
//! still to be read may have, the fewest refreshes that lead there. A choice that has no more
//! levels anywhere than another and no fewer refreshes is dropped. Where too many are left,
//! registers that are computed alike are refreshed alike; where that is too many as well, the
//! choices with the fewest refreshes go on, and the result may not be the fewest.

use super::circuit::{Circuit, Step};
use std::collections::HashMap;

/// Choices that go on from register to register.
const MOST_CHOICES: usize = 512;
/// Work of taking refreshes away one by one, in registers looked at.
const MOST_LOOKED_AT: usize = 100_000_000;

/// What a register takes.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Node {
    /// The registers that it is computed from; none for one of an input, which has all levels.
    pub operands: Vec<usize>,
    /// Levels that computing it takes.
    pub depth: usize,
    /// Whether it takes them of all levels, whatever its operands have left: of a table that is
    /// looked up.
    pub anew: bool,
    /// Levels that it must have left to be refreshed.
    pub reserve: usize,
    /// Bits of precision that refreshing it loses.
    pub loss: u32,
    /// Registers that it stands for.
    pub count: usize,
}

/// Registers to refresh.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Chosen {
    /// For every node.
    pub refreshed: Vec<bool>,
    /// Whether it is known that fewer do not serve.
    pub fewest: bool,
}

/// The fewest nodes to refresh, so that none has fewer than no levels left of `top`; with these, the
/// fewest bits lost. Nothing where no choice serves, which is so if one node takes more than `top`.
pub(super) fn search(nodes: &[Node], alike: &[usize], top: usize) -> Option<Chosen> {
    if let Some(found) = best(nodes, top, MOST_CHOICES, false)? {
        return Some(Chosen { refreshed: found, fewest: true });
    }
    // One node for all that are computed alike.
    let classes = alike.iter().max().map_or(0, |most| most + 1);
    let mut merged = vec![Node::default(); classes];
    for (node, &class) in nodes.iter().zip(alike) {
        let one = &mut merged[class];
        if one.count == 0 {
            one.operands = node.operands.iter().map(|&operand| alike[operand]).collect();
            one.depth = node.depth;
            one.anew = node.anew;
        }
        one.reserve = one.reserve.max(node.reserve);
        one.loss = one.loss.max(node.loss);
        one.count += node.count;
    }
    let found = best(&merged, top, MOST_CHOICES, true)??;
    let mut refreshed: Vec<bool> = alike.iter().map(|&class| found[class]).collect();
    thin(nodes, &mut refreshed, top);
    Some(Chosen { refreshed, fewest: false })
}

/// Takes away refreshes that others have made needless, the last first.
fn thin(nodes: &[Node], refreshed: &mut [bool], top: usize) {
    let all: Vec<usize> = (0..nodes.len()).rev().filter(|&node| refreshed[node]).collect();
    for node in all.into_iter().take(MOST_LOOKED_AT / nodes.len().max(1)) {
        refreshed[node] = false;
        if levels(nodes, refreshed, top).is_none() {
            refreshed[node] = true;
        }
    }
}

/// The levels that every node is computed with; nothing where they do not last.
pub(super) fn levels(nodes: &[Node], refreshed: &[bool], top: usize) -> Option<Vec<usize>> {
    let mut found: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut held: Vec<usize> = Vec::with_capacity(nodes.len());
    for (node, &again) in nodes.iter().zip(refreshed) {
        let operands = node.operands.iter().map(|&operand| held[operand]);
        let from = if node.anew { top } else { operands.min().unwrap_or(top) };
        let left = from.checked_sub(node.depth)?;
        if again && left < node.reserve {
            return None;
        }
        found.push(left);
        held.push(if again { top } else { left });
    }
    Some(found)
}

/// A choice: levels of the nodes that are still read, what it has cost, and the last refresh.
#[derive(Clone)]
struct Choice {
    levels: Vec<u16>,
    cost: (usize, u64),
    last: usize,
}

const NONE: usize = usize::MAX;

/// The nodes of the cheapest choice. `Some(None)` where more than `most` choices go on, unless
/// `cut`: then the rest is left out.
fn best(nodes: &[Node], top: usize, most: usize, cut: bool) -> Option<Option<Vec<bool>>> {
    let mut frontier = Frontier::new(nodes, top);
    for place in (0..nodes.len()).filter(|&place| !nodes[place].operands.is_empty()) {
        frontier.expand(place);
        match frontier.choices.len() {
            0 => return None,
            more if more > most && !cut => return Some(None),
            _ => frontier.choices.truncate(most),
        }
    }
    Some(Some(frontier.trace_back()))
}

/// The choices that lead to a node of the graph.
struct Frontier<'a> {
    nodes: &'a [Node],
    top: usize,
    /// For every node the last that reads it.
    last_read: Vec<usize>,
    /// For every node the levels that could be used from it on, if nothing were refreshed any more.
    wanted: Vec<usize>,
    /// The nodes that are still to be read, in the order of a choice's levels.
    alive: Vec<usize>,
    choices: Vec<Choice>,
    /// Each with the one before it.
    refreshes: Vec<(usize, usize)>,
}

impl<'a> Frontier<'a> {
    fn new(nodes: &'a [Node], top: usize) -> Self {
        let mut last_read: Vec<usize> = (0..nodes.len()).collect();
        for (place, node) in nodes.iter().enumerate() {
            node.operands.iter().for_each(|&operand| last_read[operand] = place);
        }
        let mut wanted = vec![0usize; nodes.len()];
        for (place, node) in nodes.iter().enumerate().rev() {
            for &operand in if node.anew { &[][..] } else { &node.operands } {
                wanted[operand] = wanted[operand].max(wanted[place] + node.depth).min(top);
            }
        }
        let choices = vec![Choice { levels: Vec::new(), cost: (0, 0), last: NONE }];
        let (alive, refreshes) = (Vec::new(), Vec::new());
        Frontier { nodes, top, last_read, wanted, alive, choices, refreshes }
    }

    /// Computes a node, with every choice and refreshed or not; keeps the choices that none beats.
    fn expand(&mut self, place: usize) {
        let Node { operands, anew, depth, .. } = &self.nodes[place];
        let position = |operand| self.alive.iter().position(|one| one == operand);
        let read: Vec<usize> = operands.iter().filter_map(position).collect();
        self.alive.push(place);
        let reads_on = |&k: &usize| self.last_read[self.alive[k]] > place;
        let stay: Vec<usize> = (0..self.alive.len()).filter(reads_on).collect();
        let choices = core::mem::take(&mut self.choices);
        let mut next: HashMap<Vec<u16>, Choice> = HashMap::with_capacity(2 * choices.len());
        for choice in &choices {
            let levels = read.iter().map(|&k| usize::from(choice.levels[k]));
            let from = if *anew { self.top } else { levels.min().unwrap_or(self.top) };
            let Some(left) = from.checked_sub(*depth) else { continue };
            for (level, cost, refreshed) in self.ways(place, left, choice.cost) {
                let of = |&k: &usize| choice.levels.get(k).copied().unwrap_or(level as u16);
                let levels: Vec<u16> = stay.iter().map(of).collect();
                if next.get(&levels).is_some_and(|held| held.cost <= cost) {
                    continue;
                }
                let mut last = choice.last;
                if refreshed {
                    self.refreshes.push((place, last));
                    last = self.refreshes.len() - 1;
                }
                next.insert(levels.clone(), Choice { levels, cost, last });
            }
        }
        self.alive = stay.iter().map(|&k| self.alive[k]).collect();
        self.choices = undominated(next.into_values().collect());
    }

    /// Levels, cost and whether it is refreshed, of a node that has `left` levels.
    fn ways(
        &self,
        place: usize,
        left: usize,
        (count, loss): (usize, u64),
    ) -> impl Iterator<Item = (usize, (usize, u64), bool)> + use<> {
        let (node, wanted) = (&self.nodes[place], self.wanted[place]);
        // A level that is never used is no better than none.
        let plain = (left.min(wanted), (count, loss), false);
        let again = (wanted, (count + node.count, loss + u64::from(node.loss)), true);
        let useful = left >= node.reserve && left < wanted;
        [Some(plain), useful.then_some(again)].into_iter().flatten()
    }

    /// The nodes that the cheapest choice refreshes.
    fn trace_back(&self) -> Vec<bool> {
        let mut found = vec![false; self.nodes.len()];
        let cheapest = self.choices.iter().min_by_key(|choice| choice.cost);
        let mut last = cheapest.map_or(NONE, |one| one.last);
        while let Some(&(node, before)) = self.refreshes.get(last) {
            found[node] = true;
            last = before;
        }
        found
    }
}

/// Choices by rising cost, without those that have no more levels than a cheaper one anywhere.
fn undominated(mut choices: Vec<Choice>) -> Vec<Choice> {
    choices.sort_by(|a, b| a.cost.cmp(&b.cost).then_with(|| b.levels.cmp(&a.levels)));
    let mut kept: Vec<Choice> = Vec::with_capacity(choices.len());
    for choice in choices {
        let worse = |other: &Choice| other.levels.iter().zip(&choice.levels).all(|(a, b)| a >= b);
        if !kept.iter().any(worse) {
            kept.push(choice);
        }
    }
    kept
}

/// For every register of a circuit a number that those have in common that are computed alike: by the
/// same operations, of what is computed alike, whatever their constants and rotations.
pub(super) fn computed_alike(circuit: &Circuit) -> Vec<usize> {
    let mut numbers: HashMap<(u8, u32, u32, Vec<usize>), usize> = HashMap::new();
    let mut found = Vec::new();
    let mut view = 0;
    for input in &circuit.inputs {
        for one in &input.views {
            let next = numbers.len();
            let number = *numbers.entry((0, view, 0, Vec::new())).or_insert(next);
            found.extend((0..one.registers).map(|_| number));
            view += 1;
        }
    }
    for step in &circuit.steps {
        let (kind, a, b) = match *step {
            Step::Add(..) => (1, 0, 0),
            Step::Subtract(..) => (2, 0, 0),
            Step::Negate(_) => (3, 0, 0),
            Step::AddNumber(..) => (4, 0, 0),
            Step::MultiplyNumber(..) => (5, 0, 0),
            Step::MultiplyInteger(..) => (6, 0, 0),
            Step::AddVector(..) => (7, 0, 0),
            Step::MultiplyVector(..) => (8, 0, 0),
            Step::Multiply(..) => (9, 0, 0),
            Step::Square(_) => (10, 0, 0),
            Step::Rotate(..) => (11, 0, 0),
            Step::Polynomial(_, index) => (12, index, 0),
            Step::Sign(_, index) => (13, index, 0),
            Step::SignStage(_, index, stage) => (14, index, stage),
            Step::Refresh(_) => (15, 0, 0),
            Step::Bound(..) => (16, 0, 0),
            Step::LookUp(_, index) => (17, index, 0),
        };
        let operands = step.operands().map(|register| found[register as usize]).collect();
        let next = numbers.len();
        found.push(*numbers.entry((kind, a, b, operands)).or_insert(next));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of small numbers: the high bits of a linear congruence.
    struct Draws(u64);

    impl Draws {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % end
        }
    }

    fn random(draws: &mut Draws, count: usize) -> Vec<Node> {
        let mut nodes = vec![Node { count: 1, ..Node::default() }; 2];
        while nodes.len() < count + 2 {
            // Mostly of what was computed last, so that graphs are deep.
            let reach = nodes.len().min(4);
            let mut operand = || nodes.len() - 1 - draws.below(reach);
            let operands = vec![operand(), operand()];
            let (depth, reserve) = (draws.below(3), draws.below(2));
            let anew = draws.below(8) == 0;
            nodes.push(Node { operands, depth, anew, reserve, loss: reserve as u32, count: 1 });
        }
        nodes
    }

    /// All subsets, the cheapest that lasts.
    fn by_force(nodes: &[Node], top: usize) -> Option<(usize, u32)> {
        let steps = nodes.len() - 2;
        let of = |subset: u32| -> Vec<bool> {
            (0..nodes.len()).map(|node| node >= 2 && subset >> (node - 2) & 1 == 1).collect()
        };
        let lasting = (0..1u32 << steps).filter(|&one| levels(nodes, &of(one), top).is_some());
        lasting.map(|one| cost(nodes, &of(one))).min()
    }

    fn cost(nodes: &[Node], refreshed: &[bool]) -> (usize, u32) {
        let chosen = nodes.iter().zip(refreshed).filter(|(_, refreshed)| **refreshed);
        chosen.fold((0, 0), |(count, loss), (node, _)| (count + node.count, loss + node.loss))
    }

    #[test]
    fn no_choice_takes_fewer_refreshes() {
        let mut draws = Draws(7);
        let (mut counts, mut none) = ([0; 8], 0);
        for round in 0..400 {
            let nodes = random(&mut draws, 11);
            let top = 2 + round % 3;
            let alike: Vec<usize> = (0..nodes.len()).collect();
            let found = search(&nodes, &alike, top);
            let forced = by_force(&nodes, top);
            let Some(found) = found else {
                assert_eq!(forced, None, "round {round}");
                none += 1;
                continue;
            };
            assert!(found.fewest, "round {round}");
            assert!(levels(&nodes, &found.refreshed, top).is_some(), "round {round}");
            let cost = cost(&nodes, &found.refreshed);
            assert_eq!(Some(cost), forced, "round {round}, {top} levels: {nodes:?}");
            counts[cost.0.min(7)] += 1;
        }
        // Graphs of all kinds were among them.
        assert!(counts[0] > 0 && counts[1] > 20 && counts[2] > 20 && counts[3] > 20, "{counts:?}");
        assert!(none < 200, "{none}");
    }

    /// Sixty-four chains that are added up in the end: too many to be told apart, and computed alike.
    #[test]
    fn what_is_computed_alike_is_refreshed_alike() {
        let (width, length, top) = (64, 12, 3);
        let node =
            |operands: Vec<usize>, depth| Node { operands, depth, count: 1, ..Node::default() };
        let mut nodes = vec![node(vec![], 0); width];
        let mut alike = vec![0; width];
        for step in 0..length {
            for chain in 0..width {
                nodes.push(node(vec![step * width + chain], 1));
                alike.push(step + 1);
            }
        }
        let mut sum = length * width;
        for chain in 1..width {
            nodes.push(node(vec![sum, length * width + chain], 0));
            alike.push(length + chain);
            sum = nodes.len() - 1;
        }
        for _ in 0..4 {
            nodes.push(node(vec![nodes.len() - 1], 1));
            alike.push(alike[alike.len() - 1] + 1);
        }
        let found = search(&nodes, &alike, top).unwrap();
        assert!(levels(&nodes, &found.refreshed, top).is_some());
        // Three times each chain, and what follows once more, as a sum.
        assert_eq!(cost(&nodes, &found.refreshed), (3 * width + 2, 0));
        assert!(!found.fewest);
    }

    #[test]
    fn a_step_that_takes_more_than_all_levels_is_seen() {
        let step =
            |operands: Vec<usize>, depth| Node { operands, depth, count: 1, ..Node::default() };
        assert_eq!(search(&[step(vec![], 0), step(vec![0], 4)], &[0, 1], 3), None);
        assert!(search(&[step(vec![], 0), step(vec![0], 3)], &[0, 1], 3).is_some());
    }
}
