//! Inventory: what is stored of a collection, and what protects it.

use std::collections::{BTreeMap, HashMap};

use ciphervec_owner::search::{Exactness, Expected, PackingChoice, WriterCard};
use ciphervec_owner::{Id, IndexSpec, Network, SecurityStatement};

use crate::change::{SegmentInfo, WRAP};
use crate::collection::Collection;
use crate::error::Result;
use crate::gathered::gathered;
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::explaining::RoutingCost;
use crate::replica::membership::MemberInfo;
use crate::replica::query_keys::QueryKey;
use crate::replica::tables::TABLE_BYTES;
use crate::threads::heavy;

/// How rows are packed in the modes whose queries are encrypted.
#[derive(Clone, Debug, PartialEq)]
pub struct Packing {
    /// What that is for.
    pub network: Network,
    /// How most rows are packed once all of them are, and what an answer then takes.
    pub choice: PackingChoice,
    /// Rows by the level that they are packed for now.
    pub rows_by_level: BTreeMap<u8, usize>,
}

/// What is clustered of a routed collection, and what is not.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingInfo {
    /// None where nothing is clustered yet.
    pub clusters: Option<RoutingCost>,
    /// Rows that every question scans.
    pub unrouted: usize,
    /// Segments of clusters that are being made.
    pub being_made: usize,
}

/// What is stored and what protects it.
#[derive(Clone, Debug)]
pub struct Info {
    /// What the index is.
    pub spec: IndexSpec,
    /// Fields whose equality a server may test by keyed tags.
    pub filterable: Vec<String>,
    /// Segments whose tags say nothing of the latest of these.
    pub untagged: usize,
    /// Whether vectors are kept as they were put in.
    pub originals: bool,
    /// What embeds texts, as JSON, where that was saved.
    pub embedding_function: Option<String>,
    /// None where queries scan everything.
    pub routing: Option<RoutingInfo>,
    /// Rows that are there.
    pub rows: usize,
    /// Rows that are deleted and still stored.
    pub deleted: usize,
    /// Rows that are stored, whatever becomes of them, without those of clusters that are being made.
    pub stored: usize,
    /// The public name of the keys.
    pub key_id: String,
    /// That of the keys that it comes from, while they are being changed.
    pub rotates_from: Option<String>,
    /// Of the collection's own query key.
    pub epoch: u32,
    /// What queries are asked under; none where they are plain.
    pub query_key: Option<QueryKey>,
    /// Of the store.
    pub version: u64,
    /// Whether the owner authenticates every state.
    pub authenticated: bool,
    /// Number and lineage of the present state.
    pub state: Option<(u64, String)>,
    /// When this lineage began, in seconds since 1970.
    pub begun: Option<u64>,
    /// Who committed the present state, and how many members there are; none where there is no list.
    pub author: Option<(MemberInfo, usize)>,
    /// What the index rests on and what the server learns.
    pub security: SecurityStatement,
    /// None in modes without a choice.
    pub packing: Option<Packing>,
    /// Oldest first.
    pub segments: Vec<SegmentInfo>,
    /// Segments that later additions merge by themselves.
    pub small_segments: usize,
    /// Rows by writer.
    pub writers: BTreeMap<String, usize>,
    /// Segments of writers that the owner has not authenticated yet.
    pub appended: Vec<String>,
    /// Rows whose id was added again later, which go with the next change.
    pub shadowed: usize,
    /// Ids that two segments of the owner's have; the later row counts.
    pub duplicates: Vec<Id>,
    /// Why segments are passed over.
    pub refused: BTreeMap<String, String>,
    /// Why segments are in quarantine.
    pub quarantine: BTreeMap<String, String>,
    /// Segments of release 0.1 whose results carry noise of the key until they are sealed again.
    pub outdated: Vec<String>,
    /// Blocks of rows that nothing is checked about, because a release before 0.2 sealed them.
    pub unchecked_blocks: usize,
    /// Segments whose opened metadata is held in memory for filters, its bytes, and the most bytes that are.
    pub filter_tables: (usize, usize, usize),
    /// Rows without effect, because their id was authenticated elsewhere before they came: their segments.
    pub ignored: Vec<(Id, String)>,
}

impl Collection {
    /// The ids that are there, in the order of insertion.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn ids(&self, host: &dyn Host) -> Result<Vec<Id>> {
        let alone = self.alone(host).await?;
        Ok(alone.directory.records().map(|(id, ..)| id.clone()).collect())
    }

    /// Those of these ids that are there, each once, in the order of insertion.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn in_order(&self, host: &dyn Host, ids: &[Id]) -> Result<Vec<Id>> {
        let alone = self.alone(host).await?;
        let turns: HashMap<_, _> =
            alone.directory.segments().enumerate().map(|(turn, (id, ..))| (id, turn)).collect();
        let placed = ids.iter().filter_map(|id| {
            let (segment, row) = alone.directory.locate(id)?;
            Some((*turns.get(&segment)?, row, id))
        });
        let mut placed: Vec<_> = placed.collect();
        placed.sort_by_key(|(turn, row, _)| (*turn, *row));
        placed.dedup_by_key(|(turn, row, _)| (*turn, *row));
        Ok(placed.into_iter().map(|(.., id)| id.clone()).collect())
    }

    /// What rows are taken less before they are sealed, empty where that is nothing; and whether it was given.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn center(&self, host: &dyn Host) -> Result<(Vec<f32>, bool)> {
        let alone = self.alone(host).await?;
        Ok((alone.center().to_vec(), !alone.description.center.is_empty()))
    }

    /// What a server needs to answer queries under the collection's own epoch, which follows, as the name of the keys does: empty where
    /// queries are plain; under schemes with a key pair the public key, which has no epoch.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn evaluation(&self, host: &dyn Host) -> Result<(Vec<u8>, u32, String)> {
        let alone = self.alone(host).await?;
        let (owner, epoch) = (&alone.owner, alone.description.epoch);
        let id = alone.description.key_id.clone();
        if alone.description.has_key_pair() {
            return Ok((owner.public_key()?, 0, id));
        }
        let keys = heavy(|| owner.evaluation(epoch))?;
        Ok((keys.map(|keys| keys.to_bytes()).unwrap_or_default(), epoch, id))
    }

    /// Whether these are the bytes of a card that the owner made, and none of them was changed since.
    ///
    /// # Errors
    /// [`crate::Error::Scheme`] for what is no card.
    pub async fn knows_card(&self, host: &dyn Host, card: &[u8]) -> Result<bool> {
        let card = WriterCard::from_bytes(card)?;
        Ok(self.alone(host).await?.owner.knows_card(&card))
    }

    /// The commit that is known here; and, where a reader of a folder is behind its writer, the one that there is by now.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn version(&self, host: &dyn Host) -> Result<(u64, Option<u64>)> {
        let alone = self.alone(host).await?;
        Ok((alone.store.listing().version, alone.store.newer()))
    }

    /// What is stored and what protects it; how rows would be packed for another `network` than the collection's, where one is given.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn info(&self, host: &dyn Host, network: Option<Network>) -> Result<Info> {
        let alone = self.alone(host).await?;
        let key = alone.query_keys.look(host).await?;
        alone.inventory(network, key)
    }
}

impl Replica {
    fn inventory(&self, network: Option<Network>, key: QueryKey) -> Result<Info> {
        let (listing, directory) = (self.store.listing(), &self.directory);
        let description = &self.description;
        let mut writers: BTreeMap<String, usize> = BTreeMap::new();
        let segments = listing.segments.values().map(|one| {
            let writer = self.writer(one.id);
            if let Some(writer) = writer {
                let rows = writers.entry(writer.to_owned()).or_default();
                *rows = rows.saturating_add(one.live());
            }
            let writer = writer.filter(|_| one.has(WRAP)).map(str::to_owned);
            SegmentInfo { writer, ..SegmentInfo::of(one) }
        });
        let segments = segments.collect();
        let ignored: Vec<_> =
            directory.aside().map(|(id, segment, _)| (id.clone(), segment.to_string())).collect();
        let staged = self.routing.staged();
        let explained = self.explain();
        // What a server lists may be any number.
        let added = |sum: usize, rows: usize| sum.saturating_add(rows);
        let counted = listing.segments.values().filter(|one| !staged.contains(&one.id));
        let stored = counted.map(|one| one.rows as usize).fold(0, added);
        let refused = directory.refused().iter().filter_map(|id| listing.segments.get(id));
        let unread = refused.map(|one| one.live()).fold(0, added);
        let active = self.routing.table.as_ref().and_then(|table| table.active.as_ref());
        let padding = active.map_or(0, |active| active.padding());
        let elsewhere = [ignored.len(), padding, directory.len()].into_iter().fold(unread, added);
        let signed = self.states.present.as_ref();
        let pin = signed.map(|signed| signed.pin());
        let tables = self.payloads.tables.held();
        let outdated = directory.segments().map(|(id, ..)| id);
        let outdated = outdated.filter(|id| directory.exactness(*id) == Some(Exactness::Outdated));
        Ok(Info {
            spec: description.spec.clone(),
            filterable: description.filterable.clone(),
            untagged: description
                .untagged
                .iter()
                .filter(|id| listing.segments.contains_key(*id))
                .count(),
            originals: description.originals,
            embedding_function: description.embedding().map(str::to_owned),
            routing: explained.routed.then(|| RoutingInfo {
                clusters: explained.routing,
                unrouted: self.fresh().iter().map(|one| one.live()).fold(0, added),
                being_made: staged.len(),
            }),
            rows: directory.len(),
            deleted: stored.saturating_sub(elsewhere),
            stored,
            key_id: description.key_id.clone(),
            rotates_from: description.rotates_from().map(str::to_owned),
            epoch: description.epoch,
            query_key: description.encrypts_queries().then_some(key),
            version: listing.version,
            authenticated: description.authenticated,
            state: pin.map(|pin| (pin.sequence, pin.lineage)),
            begun: signed.map(|signed| signed.record.begun),
            author: signed.and_then(|signed| signed.author.as_ref()).map(|author| {
                let members = description.members.as_ref().map_or(0, |list| list.members().len());
                (MemberInfo::of(author), members)
            }),
            security: description.spec.security(),
            packing: self.packing(network.unwrap_or(description.network))?,
            segments,
            small_segments: self.small(),
            writers,
            appended: self.appended.iter().map(ToString::to_string).collect(),
            shadowed: directory.shadowed().count(),
            duplicates: directory.repeated().to_vec(),
            refused: gathered(self.reasons.iter().map(|(id, why)| (id.to_string(), why.clone()))),
            quarantine: self.held(),
            outdated: outdated.map(|id| id.to_string()).collect(),
            unchecked_blocks: directory.unchecked_blocks(&self.owner),
            filter_tables: (tables.0, tables.1, TABLE_BYTES),
            ignored,
        })
    }

    fn packing(&self, network: Network) -> Result<Option<Packing>> {
        let expected = Expected { rows: self.directory.len(), network };
        let Some(choice) = self.owner.packing(&expected)? else { return Ok(None) };
        let mut rows_by_level: BTreeMap<u8, usize> = BTreeMap::new();
        for (_, rows, level) in self.directory.segments() {
            *rows_by_level.entry(level).or_default() += rows as usize;
        }
        Ok(Some(Packing { network, choice, rows_by_level }))
    }
}
