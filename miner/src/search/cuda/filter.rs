//! What finds the keys of a pattern set on the device: bitmaps of its intervals, built on the device,
//! and tables by which the keys inside the intervals are checked.

use super::abi::{DeviceChecks, DeviceMember, Interval};
use super::constants::{FINE_BITS, LARGE_BITS, ROUGH_SLACK, SLACK};
use super::key_tests::KeyTests;
use super::launch::{FilterForm, Variant};
use crate::pattern::{self, ChecksumTables, MOST_INTERVALS, PatternSet};
use cudarc::driver::{
    CudaEvent, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, LaunchConfig, PinnedHostSlice,
    PushKernelArg,
};
use std::sync::Arc;

/// Bytes of the largest coarse bitmap.
const COARSE_BYTES: usize = 1 << (LARGE_BITS - 3);
// The kernels for one interval or a few have the larger rounding error, so they need the wider
// slack.
const _: () = assert!(ROUGH_SLACK > SLACK);
// Twelve rough products, each off by at most 743 (`kernels/field.cuh`).
const _: () = assert!(ROUGH_SLACK > 12 * 743);

/// Number of intervals up to which the kernel's form for a few is faster than its form for many.
/// The form for a few has a larger rounding error, so each interval lets more keys pass.
const FEW_INTERVALS: usize = 80;

pub struct DeviceFilter {
    pub coarse: CudaSlice<u32>,
    pub fine: CudaSlice<u32>,
    pub intervals: CudaSlice<Interval>,
    pub count: usize,
    /// The only interval of top words, widened by the slack, as first value and width. `None` if
    /// there are several intervals.
    pub single: Option<(u32, u32)>,
    /// Conditions on the keys inside the intervals.
    pub checks: CheckTables,
    /// Tests of whole keys, for patterns that the first 32 bits restrict too little.
    pub tests: KeyTests,
    staging: PinnedHostSlice<Interval>,
    /// Recorded after the last copy out of `staging`.
    copied: Option<CudaEvent>,
    patterns: Option<Arc<PatternSet>>,
    /// Name of the variant that uses the bitmaps.
    variant: &'static str,
    /// The largest share of a whole launch, 0 to 1, at which the hits of these patterns are known
    /// to fit into the buffers.
    pub share: f64,
}

impl DeviceFilter {
    pub fn new(stream: &Arc<CudaStream>) -> Result<DeviceFilter, DriverError> {
        Ok(DeviceFilter {
            coarse: stream.alloc_zeros(COARSE_BYTES / 4)?,
            fine: stream.alloc_zeros(1 << (FINE_BITS - 5))?,
            intervals: stream.alloc_zeros(MOST_INTERVALS)?,
            count: 0,
            single: None,
            checks: CheckTables::new(stream)?,
            tests: KeyTests::new(stream)?,
            // SAFETY: written before it is read.
            staging: unsafe { stream.context().alloc_pinned(MOST_INTERVALS)? },
            copied: None,
            patterns: None,
            variant: "",
            share: 1.0,
        })
    }

    /// The form of a kernel that the intervals need.
    pub fn form(&self) -> FilterForm {
        match self.count {
            _ if self.single.is_some() => FilterForm::One,
            ..=FEW_INTERVALS => FilterForm::Few,
            _ => FilterForm::Many,
        }
    }

    fn is_for(&self, patterns: &Arc<PatternSet>) -> bool {
        self.patterns.as_ref().is_some_and(|old| Arc::ptr_eq(old, patterns))
    }

    /// Queues the change to `patterns` on the stream.
    pub fn set(
        &mut self,
        stream: &Arc<CudaStream>,
        build: &CudaFunction,
        patterns: &Arc<PatternSet>,
        variant: &Variant,
    ) -> Result<(), DriverError> {
        if self.is_for(patterns) && self.variant == variant.name {
            return Ok(());
        }
        let intervals: Vec<Interval> =
            patterns.intervals().iter().map(|&(first, last)| Interval { first, last }).collect();
        self.count = intervals.len();
        self.single = match intervals[..] {
            [Interval { first, last }] => {
                let (first, last) = ((first >> 32) as u32, (last >> 32) as u32);
                Some((first.wrapping_sub(ROUGH_SLACK), (last - first).saturating_add(2 * ROUGH_SLACK)))
            }
            _ => None,
        };
        self.share = 1.0;
        self.checks.set(stream, patterns)?;
        self.tests.set(stream, patterns)?;
        self.patterns = Some(patterns.clone());
        self.variant = variant.name;
        // The previous copy was queued before the previous launch, so this wait is short.
        if let Some(copied) = &self.copied {
            copied.synchronize()?;
        }
        self.staging.as_mut_slice()?[..self.count].copy_from_slice(&intervals);
        let staged = &self.staging.as_slice()?[..self.count];
        stream.memcpy_htod(staged, &mut self.intervals.slice_mut(..self.count))?;
        self.copied = Some(stream.record_event(None)?);
        let form = self.form();
        if form != FilterForm::One && !self.tests.are_needed() {
            stream.memset_zeros(&mut self.coarse)?;
            stream.memset_zeros(&mut self.fine)?;
            let coarse_bits = variant.kernel(form).bits;
            let (count, is_few) = (self.count as u32, u32::from(form == FilterForm::Few));
            let config =
                LaunchConfig { grid_dim: (count.clamp(1, 1024), 1, 1), block_dim: (128, 1, 1), shared_mem_bytes: 0 };
            let mut launch = stream.launch_builder(build);
            launch
                .arg(&self.intervals)
                .arg(&count)
                .arg(&mut self.coarse)
                .arg(&coarse_bits)
                .arg(&mut self.fine)
                .arg(&is_few);
            // SAFETY: the arguments match `build_filter`, and the buffers have the sizes it
            // assumes.
            unsafe { launch.launch(config)? };
        }
        Ok(())
    }
}

/// The checks of the current pattern set, and the tables of the checksum.
pub struct CheckTables {
    first_member: CudaSlice<u32>,
    members: CudaSlice<DeviceMember>,
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
        let members: Vec<DeviceMember> = members
            .iter()
            .map(|&pattern::Member { first, last, words }| DeviceMember { first, last, words, unused: 0 })
            .collect();
        // A buffer is never empty.
        words.push(0);
        self.first_member = stream.clone_htod(&first_member)?;
        self.members = stream.clone_htod(&members)?;
        self.words = stream.clone_htod(&words)?;
        Ok(())
    }

    /// The argument of `confirm`.
    pub fn argument(&self, stream: &Arc<CudaStream>) -> DeviceChecks {
        DeviceChecks {
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
}
