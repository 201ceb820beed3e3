//! Which `syscall` instructions a file has.
//!
//! Candidates are the byte pairs of `syscall` in executable segments. Only the regions that hold one
//! are decoded. Time is linear in the file's size: each region is decoded once, and regions are
//! disjoint.

use std::ops::Range;

use memchr::memmem;

use super::flow::{Evidence, Flow};
use super::functions::{Bounds, Code, Functions, Region};
use super::run::{self, MOV_RT_SIGRETURN};
use super::{Analysis, AnalysisError, CANDIDATES_MAX, FILE_MAX, SYSCALL, Site, SiteKind, lazy};
use crate::elf;

/// System call numbers below this are taken for plausible; Linux 6.18 has fewer than 500.
const NUMBER_END: u32 = 1024;

/// Finds the sites of an ELF file, given whole.
///
/// A candidate is a true site if control flow leads to it from the start of a function, or if
/// decoding straight on does and nothing contradicts it. In code that belongs to no
/// known function it is one only if a plausible system call number is loaded right before it.
///
/// # Errors
///
/// See [`AnalysisError`].
pub fn analyse(elf_file: &[u8]) -> Result<Analysis, AnalysisError> {
    let size = elf_file.len() as u64;
    if size > FILE_MAX {
        return Err(AnalysisError::TooLarge(size));
    }
    let image = elf::parse(elf_file)?;
    let segments = Code::of(&image, elf_file)?;
    let candidates: Vec<Vec<usize>> = candidates(&segments)?;
    let mut analysis = Analysis::default();
    if candidates.iter().all(Vec::is_empty) {
        return Ok(analysis);
    }
    let bounds = Bounds::of(&image, elf_file);
    let mut plans = Vec::new();
    for (code, candidates) in segments.iter().zip(&candidates) {
        let functions = bounds.in_segment(code);
        plans.extend(
            Scan {
                code,
                functions: &functions,
                bounds: &bounds,
            }
            .run(candidates, &mut analysis),
        );
    }
    refuse_entered_runs(&segments, &mut plans);
    analysis.sites = plans.into_iter().map(|plan| plan.site).collect();
    // Segments ascend by address, not by their place in the file.
    analysis.sites.sort_by_key(|site| site.file_offset);
    analysis.rejected.sort_unstable();
    analysis.unknown.sort_unstable();
    debug_assert!(analysis.is_well_formed());
    Ok(analysis)
}

/// Offsets of the candidates in each segment.
fn candidates(segments: &[Code<'_>]) -> Result<Vec<Vec<usize>>, AnalysisError> {
    let mut left = CANDIDATES_MAX;
    let finder = memmem::Finder::new(&SYSCALL);
    segments
        .iter()
        .map(|code| {
            let found: Vec<usize> = finder.find_iter(code.bytes).take(left + 1).collect();
            left = left
                .checked_sub(found.len())
                .ok_or(AnalysisError::TooManyCandidates)?;
            Ok(found)
        })
        .collect()
}

/// A site, and what has still to be checked about it.
struct Plan {
    site: Site,
    /// Set if its run has several instructions.
    inside: Option<Inside>,
}

/// The inside of a run of several instructions.
#[derive(Clone)]
struct Inside {
    /// Addresses that nothing may branch to.
    addresses: Range<u64>,
    /// Where all branches are known, and none leads to them.
    region: Range<u64>,
}

/// What a candidate turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    True(Evidence),
    Rejected,
    Unknown,
    /// Behind the end of a function, and no part of it.
    Outside,
}

/// The scan of one segment.
struct Scan<'a> {
    code: &'a Code<'a>,
    functions: &'a Functions,
    bounds: &'a Bounds,
}

impl Scan<'_> {
    fn run(&self, candidates: &[usize], analysis: &mut Analysis) -> Vec<Plan> {
        let mut plans = Vec::new();
        let mut rest = candidates;
        while let Some(&first) = rest.first() {
            let address = self.code.vaddr + first as u64;
            let Some(region) = self.functions.region_at(address) else {
                rest = &rest[1..];
                plans.extend(self.outside_functions(first, analysis));
                continue;
            };
            let count =
                rest.partition_point(|&offset| self.code.vaddr + (offset as u64) < region.limit);
            let (inside, others) = rest.split_at(count.max(1));
            rest = others;
            self.region(region, inside, analysis, &mut plans);
        }
        plans
    }

    fn region(
        &self,
        region: &Region,
        candidates: &[usize],
        analysis: &mut Analysis,
        plans: &mut Vec<Plan>,
    ) {
        let bytes = self.code.at(region.range.start..region.limit);
        let mut flow = Flow::new(region, bytes);
        let is_complete = region.is_sized && !region.has_landing_pads && !flow.has_indirect_jump;
        let region_offset = (region.range.start - self.code.vaddr) as usize;
        for &candidate in candidates {
            let file_offset = self.code.file_offset + candidate as u64;
            let address = self.code.vaddr + candidate as u64;
            let offset = candidate - region_offset;
            let verdict = if self.bounds.is_data(address) {
                Verdict::Rejected
            } else {
                judge(region, &flow, bytes, offset)
            };
            match verdict {
                Verdict::Rejected => analysis.rejected.push(file_offset),
                Verdict::Unknown => analysis.unknown.push(file_offset),
                Verdict::Outside => plans.extend(self.outside_functions(candidate, analysis)),
                Verdict::True(evidence) => {
                    let allow_several = is_complete && address < region.range.end;
                    let run = run::find(&mut flow, offset, evidence, allow_several);
                    let start = run.map(|run| region_offset + run.start);
                    let mut plan = self.plan(candidate, start);
                    plan.inside = run.filter(|run| run.has_several).map(|run| Inside {
                        addresses: address - (offset - run.start) as u64 + 1..address,
                        region: region.range.start..region.limit,
                    });
                    plans.push(plan);
                }
            }
        }
    }

    /// A site whose displaced instructions start at `start`, an offset in the segment.
    fn plan(&self, candidate: usize, start: Option<usize>) -> Plan {
        let displaced = start
            .and_then(|start| self.code.bytes.get(start..candidate))
            .filter(|&displaced| displaced != MOV_RT_SIGRETURN);
        let file_offset = self.code.file_offset + candidate as u64;
        let kind = match displaced {
            Some(displaced) => SiteKind::Patch {
                start_file_offset: file_offset - displaced.len() as u64,
                displaced: displaced.to_vec(),
            },
            None => SiteKind::Trap,
        };
        Plan {
            site: Site { file_offset, kind },
            inside: None,
        }
    }

    /// A candidate in no known function.
    fn outside_functions(&self, candidate: usize, analysis: &mut Analysis) -> Option<Plan> {
        let file_offset = self.code.file_offset + candidate as u64;
        if self.bounds.is_data(self.code.vaddr + candidate as u64) {
            analysis.rejected.push(file_offset);
            return None;
        }
        let before = self.code.bytes.get(..candidate).unwrap_or_default();
        let length = number_load(before).filter(|&length| lazy::is_unambiguous(before, length));
        match length {
            Some(length) => Some(self.plan(candidate, Some(candidate - length))),
            None => {
                analysis.unknown.push(file_offset);
                None
            }
        }
    }
}

/// Judges the candidate at an offset of a region, whose bytes are `code`.
///
/// What control flow leads to is code. What it does not lead to may be code behind an indirect jump
/// (a switch) or where exceptions land: then decoding straight on must arrive there, must have made
/// sense of the whole region, and must find a plausible system call number loaded right before. The
/// rest is data, or the inside of another instruction.
fn judge(region: &Region, flow: &Flow<'_>, code: &[u8], offset: usize) -> Verdict {
    let is_covered = flow.is_inside_instruction(offset, Evidence::Reached);
    if flow.starts_at(offset, Evidence::Reached) {
        return if is_covered {
            Verdict::Unknown
        } else {
            Verdict::True(Evidence::Reached)
        };
    }
    if is_covered {
        return Verdict::Rejected;
    }
    if offset as u64 >= region.range.end - region.range.start {
        return Verdict::Outside;
    }
    if !flow.starts_at(offset, Evidence::Swept) {
        return Verdict::Rejected;
    }
    let may_be_hidden = flow.has_indirect_jump || region.has_landing_pads;
    let has_number = number_load(code.get(..offset).unwrap_or_default()).is_some();
    if may_be_hidden && region.is_sized && flow.sweep_is_valid && has_number {
        Verdict::True(Evidence::Swept)
    } else {
        Verdict::Unknown
    }
}

/// Length of the instruction before a `syscall` that loads a plausible number.
fn number_load(before: &[u8]) -> Option<usize> {
    const MOV_EAX: &[u8] = &[0xb8];
    const MOV_RAX: &[u8] = &[0x48, 0xc7, 0xc0];
    let (opcode, operand) = before.split_last_chunk::<4>()?;
    let is_plausible = u32::from_le_bytes(*operand) < NUMBER_END;
    let opcode = [MOV_RAX, MOV_EAX]
        .into_iter()
        .find(|load| opcode.ends_with(load))?;
    is_plausible.then_some(opcode.len() + operand.len())
}

/// Gives up the runs of several instructions that a branch from another region enters: cold parts of
/// functions are functions of their own, and jump back. All bytes that could be a near branch are
/// taken for one.
fn refuse_entered_runs(segments: &[Code<'_>], plans: &mut [Plan]) {
    let mut runs: Vec<(Inside, usize)> = plans
        .iter()
        .enumerate()
        .filter_map(|(index, plan)| Some((plan.inside.clone()?, index)))
        .collect();
    runs.sort_by_key(|(inside, _)| inside.addresses.start);
    if runs.is_empty() {
        return;
    }
    for code in segments {
        for (at, window) in code.bytes.windows(BRANCH_WINDOW).enumerate() {
            let address = code.vaddr + at as u64;
            let Some(target) = branch_target(address, window) else {
                continue;
            };
            let after = runs.partition_point(|(inside, _)| inside.addresses.start <= target);
            let nearest = after.checked_sub(1).and_then(|index| runs.get(index));
            if let Some((inside, index)) = nearest
                && inside.addresses.contains(&target)
                && !inside.region.contains(&(address + 1))
                && let Some(plan) = plans.get_mut(*index)
            {
                plan.site.kind = SiteKind::Trap;
            }
        }
    }
}

/// A byte that may be `0f`, the opcode, and a displacement of 32 bits.
const BRANCH_WINDOW: usize = 2 + 4;

/// Where the branch leads whose last opcode byte is the window's second byte.
fn branch_target(address: u64, window: &[u8]) -> Option<u64> {
    let (opcode, displacement) = window.split_first_chunk::<2>()?;
    let (displacement, size) = match opcode {
        // call and jmp, or a conditional jump, with 32 bits.
        [_, 0xe8 | 0xe9] | [0x0f, 0x80..=0x8f] => {
            (i32::from_le_bytes(*displacement.first_chunk()?), 4)
        }
        // Conditional jumps, loop, jrcxz and jmp with 8 bits.
        [_, 0x70..=0x7f | 0xe0..=0xe3 | 0xeb] => {
            (i8::from_le_bytes(*displacement.first_chunk()?).into(), 1)
        }
        _ => return None,
    };
    let end = address.wrapping_add(opcode.len() as u64 + size);
    Some(end.wrapping_add_signed(displacement.into()))
}

#[cfg(test)]
mod tests;
