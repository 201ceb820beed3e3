//! The instructions of one region, found in two ways: by following control flow from its functions'
//! starts, and by decoding straight on from them.

use iced_x86::{Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use super::functions::Region;

/// What is known of the byte at one offset of a region.
#[derive(Clone, Copy, Debug, Default)]
struct Mark(u8);

impl Mark {
    /// Length of the instruction that starts here, 1 to 15, or 0.
    const LENGTH: u8 = 0x0f;
    /// A branch, a call, a function's start or an address that is taken points here.
    const TARGET: u8 = 0x10;
    /// Control flow leads here.
    const REACHED: u8 = 0x20;
    /// Decoding straight on leads here.
    const SWEPT: u8 = 0x40;

    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    fn set_instruction(&mut self, length: usize, flag: u8) {
        self.0 = (self.0 & !Self::LENGTH) | (length as u8 & Self::LENGTH) | flag;
    }

    fn length(self) -> usize {
        usize::from(self.0 & Self::LENGTH)
    }
}

/// How an instruction was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// By following control flow.
    Reached,
    /// By decoding straight on.
    Swept,
}

impl Evidence {
    fn flag(self) -> u8 {
        match self {
            Self::Reached => Mark::REACHED,
            Self::Swept => Mark::SWEPT,
        }
    }
}

/// The instructions of a region. Offsets count from the region's start.
pub(super) struct Flow<'a> {
    decoder: Decoder<'a>,
    base: u64,
    marks: Vec<Mark>,
    /// One past what is surely code: the functions' known end. Behind it may be data, and a call
    /// right before it may be one that never returns, so that calls end paths from there on.
    certain_end: usize,
    /// Whether it has an indirect jump, so that there may be code that control flow does not show.
    pub has_indirect_jump: bool,
    /// Whether decoding straight on met no invalid instruction.
    pub sweep_is_valid: bool,
}

impl<'a> Flow<'a> {
    /// `code` are the bytes from the region's start to its limit.
    pub(super) fn new(region: &Region, code: &'a [u8]) -> Self {
        let length = ((region.range.end - region.range.start) as usize).min(code.len());
        let mut flow = Self {
            decoder: Decoder::with_ip(64, code, region.range.start, DecoderOptions::NONE),
            base: region.range.start,
            marks: vec![Mark::default(); code.len()],
            certain_end: if region.is_sized { length } else { 0 },
            has_indirect_jump: false,
            sweep_is_valid: true,
        };
        let starts: Vec<usize> = region
            .starts
            .iter()
            .filter_map(|&start| flow.offset(start))
            .collect();
        flow.follow(&starts);
        flow.sweep(&starts, length);
        flow
    }

    fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.base)?).ok()?;
        (offset < self.marks.len()).then_some(offset)
    }

    /// The instruction at an offset; `None` if it is invalid or reaches beyond the region.
    pub(super) fn decode(&mut self, offset: usize) -> Option<Instruction> {
        self.decoder.set_position(offset).ok()?;
        self.decoder.set_ip(self.base + offset as u64);
        let instruction = self.decoder.decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn follow(&mut self, starts: &[usize]) {
        for &start in starts {
            self.marks[start].0 |= Mark::TARGET;
        }
        let mut pending = starts.to_vec();
        while let Some(start) = pending.pop() {
            self.follow_block(start, &mut pending);
        }
    }

    /// Follows one path until it ends or joins another.
    fn follow_block(&mut self, start: usize, pending: &mut Vec<usize>) {
        let mut at = start;
        while self
            .marks
            .get(at)
            .is_some_and(|mark| !mark.has(Mark::REACHED))
        {
            let Some(instruction) = self.decode(at) else {
                return;
            };
            self.marks[at].set_instruction(instruction.len(), Mark::REACHED);
            if let Some(target) = target_of(&instruction).and_then(|target| self.offset(target)) {
                self.marks[target].0 |= Mark::TARGET;
                // A taken address may be that of data.
                if !instruction.is_ip_rel_memory_operand() {
                    pending.push(target);
                }
            }
            self.has_indirect_jump |= instruction.flow_control() == FlowControl::IndirectBranch;
            at += instruction.len();
            if ends_path(&instruction) || at >= self.certain_end && is_call(&instruction) {
                return;
            }
        }
    }

    fn sweep(&mut self, starts: &[usize], length: usize) {
        for (index, &start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(length);
            let mut at = start;
            while at < end {
                let Some(instruction) = self.decode(at) else {
                    self.sweep_is_valid = false;
                    break;
                };
                self.marks[at].set_instruction(instruction.len(), Mark::SWEPT);
                if let Some(target) = target_of(&instruction).and_then(|to| self.offset(to)) {
                    self.marks[target].0 |= Mark::TARGET;
                }
                self.has_indirect_jump |= instruction.flow_control() == FlowControl::IndirectBranch;
                at += instruction.len();
            }
        }
    }

    /// Whether an instruction was found to start at an offset.
    pub(super) fn starts_at(&self, offset: usize, evidence: Evidence) -> bool {
        self.marks
            .get(offset)
            .is_some_and(|mark| mark.has(evidence.flag()))
    }

    /// Whether something points at an offset.
    pub(super) fn is_target(&self, offset: usize) -> bool {
        self.marks
            .get(offset)
            .is_some_and(|mark| mark.has(Mark::TARGET))
    }

    /// Where the instruction starts that ends at an offset.
    pub(super) fn previous(&self, offset: usize, evidence: Evidence) -> Option<usize> {
        (1..=15)
            .map_while(|length| Some((offset.checked_sub(length)?, length)))
            .find(|&(start, length)| {
                self.starts_at(start, evidence) && self.marks[start].length() == length
            })
            .map(|(start, _)| start)
    }

    /// Whether an instruction that starts before an offset reaches over it.
    pub(super) fn is_inside_instruction(&self, offset: usize, evidence: Evidence) -> bool {
        (1..15)
            .map_while(|distance| Some((offset.checked_sub(distance)?, distance)))
            .any(|(start, distance)| {
                self.starts_at(start, evidence) && self.marks[start].length() > distance
            })
    }
}

/// Where a branch or call leads, or what address is taken.
fn target_of(instruction: &Instruction) -> Option<u64> {
    let is_branch = instruction.is_jmp_short_or_near()
        || instruction.is_jcc_short_or_near()
        || instruction.is_call_near()
        || instruction.is_jcx_short()
        || instruction.is_loop()
        || instruction.is_loopcc()
        || matches!(
            instruction.code(),
            Opcode::Xbegin_rel16 | Opcode::Xbegin_rel32
        );
    if is_branch {
        return Some(instruction.near_branch_target());
    }
    let takes_address =
        instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand();
    takes_address.then(|| instruction.ip_rel_memory_address())
}

fn is_call(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}

fn ends_path(instruction: &Instruction) -> bool {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::Return
        | FlowControl::Exception => true,
        FlowControl::Interrupt => instruction.mnemonic() == Mnemonic::Int3,
        _ => instruction.mnemonic() == Mnemonic::Hlt,
    }
}
