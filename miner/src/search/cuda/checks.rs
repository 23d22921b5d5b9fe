//! Tables by which the device checks the keys inside the intervals of a pattern set.

use super::abi::{Checks, Member};
use super::buffers::Buffer;
use crate::pattern::{self, ChecksumTables, PatternSet};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};
use std::sync::Arc;

/// The checks of the current pattern set, and the tables of the checksum.
pub struct CheckTables {
    first_member: CudaSlice<u32>,
    members: CudaSlice<Member>,
    words: CudaSlice<u32>,
    checksums: CudaSlice<u32>,
    /// Whether there is something to check.
    is_needed: bool,
}

impl CheckTables {
    /// Tables for which nothing is to be checked yet.
    pub fn new(stream: &Arc<CudaStream>) -> Result<CheckTables, DriverError> {
        let tables = ChecksumTables::get();
        let flat: Vec<u32> = tables.bytes.iter().flatten().copied().chain([tables.zero]).collect();
        Ok(CheckTables {
            first_member: stream.alloc_zeros(1)?,
            members: stream.alloc_zeros(1)?,
            words: stream.alloc_zeros(1)?,
            checksums: stream.clone_htod(&flat)?,
            is_needed: false,
        })
    }

    /// Queues the change to `patterns` on the stream. Launches in flight keep their tables: the
    /// driver frees memory in the order of the stream.
    pub fn set(&mut self, stream: &Arc<CudaStream>, patterns: &PatternSet) -> Result<(), DriverError> {
        let checks = patterns.checks();
        self.is_needed = checks.is_some();
        let Some(pattern::Checks { first_member, members, mut words }) = checks else { return Ok(()) };
        let members: Vec<Member> = members
            .iter()
            .map(|&pattern::Member { first, last, words }| Member { first, last, words, unused: 0 })
            .collect();
        // A buffer is never empty.
        words.push(0);
        self.first_member = stream.clone_htod(&first_member)?;
        self.members = stream.clone_htod(&members)?;
        self.words = stream.clone_htod(&words)?;
        Ok(())
    }

    /// The argument of `confirm`.
    pub fn argument(&self, stream: &Arc<CudaStream>) -> Checks {
        Checks {
            first_member: if self.is_needed { self.first_member.device_ptr(stream).0 } else { 0 },
            members: self.members.device_ptr(stream).0,
            words: self.words.device_ptr(stream).0,
            checksums: self.checksums(stream),
        }
    }

    /// The address of the tables of the checksum.
    pub fn checksums(&self, stream: &Arc<CudaStream>) -> u64 {
        self.checksums.device_ptr(stream).0
    }

    /// All buffers. Destructures every field: a new buffer cannot be forgotten here.
    pub fn buffers(&self) -> Vec<Buffer<'_>> {
        let CheckTables { first_member, members, words, checksums, is_needed: _ } = self;
        vec![
            Buffer::on_device("first members", first_member),
            Buffer::on_device("members", members),
            Buffer::on_device("words of patterns", words),
            Buffer::on_device("checksums", checksums),
        ]
    }
}
