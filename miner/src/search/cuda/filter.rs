//! What finds the keys of a pattern set on the device: bitmaps of its intervals, built on the device,
//! and tables by which the keys inside the intervals are checked.

use super::abi::{DeviceChecks, DeviceMember, DeviceScreen, DeviceTextTest, Interval, WholeSearch};
use super::constants::{FINE_BITS, LARGE_BITS, ROUGH_SLACK, SLACK};
use super::key_tests::{for_device, screen_of};
use super::launch::{FilterForm, Variant};
use crate::pattern::{Checks, ChecksumTables, MAX_INTERVALS, Member, PatternSet};
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
    first_member: CudaSlice<u32>,
    members: CudaSlice<DeviceMember>,
    words: CudaSlice<u32>,
    /// Whether there are such conditions.
    has_checks: bool,
    /// The tables of the checksum.
    checksums: CudaSlice<u32>,
    /// Tests of whole keys, for patterns that the first 32 bits restrict too little.
    tests: CudaSlice<DeviceTextTest>,
    /// The argument of the kernel that tests texts, without addresses.
    whole: WholeSearch,
    /// Quick tests of whole keys; `None` if quick tests cannot express the tests.
    pub screen: Option<DeviceScreen>,
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
    /// A filter of no patterns. A buffer is never empty.
    pub fn new(stream: &Arc<CudaStream>) -> Result<DeviceFilter, DriverError> {
        let tables = ChecksumTables::get();
        let checksums: Vec<u32> = tables.bytes.iter().flatten().copied().chain([tables.zero]).collect();
        Ok(DeviceFilter {
            coarse: stream.alloc_zeros(COARSE_BYTES / 4)?,
            fine: stream.alloc_zeros(1 << (FINE_BITS - 5))?,
            intervals: stream.alloc_zeros(MAX_INTERVALS)?,
            count: 0,
            single: None,
            first_member: stream.alloc_zeros(1)?,
            members: stream.alloc_zeros(1)?,
            words: stream.alloc_zeros(1)?,
            has_checks: false,
            checksums: stream.clone_htod(&checksums)?,
            tests: stream.alloc_zeros(1)?,
            whole: WholeSearch::default(),
            screen: None,
            // SAFETY: written before it is read.
            staging: unsafe { stream.context().alloc_pinned(MAX_INTERVALS)? },
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

    /// Whether whole keys must be compared.
    pub fn compares_whole_keys(&self) -> bool {
        self.whole.key_tests + self.whole.checksum_tests > 0
    }

    /// The argument of `confirm`.
    pub fn checks(&self, stream: &Arc<CudaStream>) -> DeviceChecks {
        DeviceChecks {
            first_member: if self.has_checks { self.first_member.device_ptr(stream).0 } else { 0 },
            members: self.members.device_ptr(stream).0,
            words: self.words.device_ptr(stream).0,
            checksums: self.checksums.device_ptr(stream).0,
        }
    }

    /// The argument of the kernel that tests texts.
    pub fn whole_search(&self, stream: &Arc<CudaStream>) -> WholeSearch {
        let (tests, checksums) = (self.tests.device_ptr(stream).0, self.checksums.device_ptr(stream).0);
        WholeSearch { tests, checksums, ..self.whole }
    }

    /// Queues the change to `patterns` on the stream. Launches in flight keep their tables: the
    /// driver frees memory in the order of the stream.
    pub fn set(
        &mut self,
        stream: &Arc<CudaStream>,
        build: &CudaFunction,
        patterns: &Arc<PatternSet>,
        variant: &Variant,
    ) -> Result<(), DriverError> {
        let is_same = self.patterns.as_ref().is_some_and(|old| Arc::ptr_eq(old, patterns));
        if is_same && self.variant == variant.name {
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
        let checks = patterns.checks();
        self.has_checks = checks.is_some();
        if let Some(Checks { first_member, members, mut words }) = checks {
            let member = |&Member { first, last, words }: &Member| DeviceMember { first, last, words, unused: 0 };
            words.push(0);
            self.first_member = stream.clone_htod(&first_member)?;
            self.members = stream.clone_htod(&members.iter().map(member).collect::<Vec<_>>())?;
            self.words = stream.clone_htod(&words)?;
        }
        let (tests, whole) = for_device(patterns);
        (self.whole, self.screen) = (whole, patterns.text_tests().as_ref().and_then(screen_of));
        if !tests.is_empty() {
            self.tests = stream.clone_htod(&tests)?;
        }
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
        if form != FilterForm::One && !self.compares_whole_keys() {
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
