-- Decodes weir's aggregation header (docs/protocol.md) in Wireshark and tshark:
--
--   tshark -X lua_script:testbeds/weir.lua -r capture.pcap -Y 'weir.kind == 2'
--
-- Or put this file into Wireshark's folder of personal Lua plugins.

local weir = Proto("weir", "weir in-network aggregation")

local UDP_PORT = 22341
local HEADER_LEN = 24
local PROTOCOL_VERSION = 2
local ALL_WORKERS = 0x3ff
-- A tree with every value would bury everything else; the rest is there as bytes.
local SHOWN_VALUES = 16

local KIND_UPDATE, KIND_SUM, KIND_RESULT, KIND_ASK, KIND_HERE, KIND_GIVE, KIND_GIVEN, KIND_DIFFER = 1, 2, 3, 4, 5, 6, 7, 8
local KINDS = {
  [KIND_UPDATE] = "UPDATE", [KIND_SUM] = "SUM", [KIND_RESULT] = "RESULT", [KIND_ASK] = "ASK", [KIND_HERE] = "HERE",
  [KIND_GIVE] = "GIVE", [KIND_GIVEN] = "GIVEN", [KIND_DIFFER] = "DIFFER",
}

local f = weir.fields
f.version = ProtoField.uint8("weir.version", "Protocol version", base.DEC, nil, 0xf0)
f.kind = ProtoField.uint8("weir.kind", "Kind", base.DEC, KINDS, 0x0f)
f.flags = ProtoField.uint8("weir.flags", "Flags", base.HEX)
f.slot_version = ProtoField.bool("weir.flags.version", "Slot version", 8, { "1", "0" }, 0x80)
f.scale_only = ProtoField.bool("weir.flags.scale_only", "Scale only", 8, nil, 0x04)
f.probe = ProtoField.bool("weir.flags.probe", "Probe", 8, nil, 0x08)
f.timed = ProtoField.bool("weir.flags.timed", "May be closed", 8, nil, 0x10)
f.close = ProtoField.bool("weir.flags.close", "Close", 8, nil, 0x20)
f.kept = ProtoField.bool("weir.flags.kept", "Kept by a rank", 8, nil, 0x40)
f.again = ProtoField.bool("weir.flags.again", "Again", 8, nil, 0x02)
f.non_finite = ProtoField.bool("weir.flags.non_finite", "Not finite", 8, nil, 0x01)
f.job = ProtoField.uint16("weir.job", "Job")
f.chunk = ProtoField.uint32("weir.chunk", "Chunk")
f.slot = ProtoField.uint16("weir.slot", "Slot")
f.worker = ProtoField.uint16("weir.worker", "Worker", base.DEC, nil, 0xffc0)
f.transmission = ProtoField.uint16("weir.transmission", "Transmission", base.DEC, nil, 0x003f)
f.contributors = ProtoField.uint64("weir.contributors", "Contributors", base.HEX)
f.contributor_count = ProtoField.uint8("weir.contributor_count", "Number of contributors")
f.scale = ProtoField.uint8("weir.scale", "Scale")
f.next_scale = ProtoField.uint8("weir.next_scale", "Next scale")
f.count = ProtoField.uint16("weir.count", "Number of values")
f.values = ProtoField.bytes("weir.values", "Values")
f.integer = ProtoField.int32("weir.value", "Value")
f.float = ProtoField.float("weir.value_float", "Value")

local truncated = ProtoExpert.new("weir.truncated", "Fewer bytes than announced",
  expert.group.MALFORMED, expert.severity.ERROR)
local unknown_version = ProtoExpert.new("weir.unknown_version", "Protocol version that this dissector does not know",
  expert.group.UNDECODED, expert.severity.WARN)
local unknown_kind = ProtoExpert.new("weir.unknown_kind", "Unknown kind",
  expert.group.PROTOCOL, expert.severity.WARN)
weir.experts = { truncated, unknown_version, unknown_kind }

-- Lua 5.1 to 5.4 have no bit operation in common.
local function bit(number, index)
  return math.floor(number / 2 ^ index) % 2
end

local function bits_set(bitmap)
  local count = 0
  for index = 0, 31 do
    count = count + bit(bitmap, index)
  end
  return count
end

local function exponent(scale)
  if scale == 0 then
    return "zero, or none"
  end
  return string.format("2^%d", scale - 127)
end

local function add_scale(tree, field, range)
  tree:add(field, range):append_text(" (" .. exponent(range:uint()) .. ")")
end

local function add_flags(tree, range)
  local flags = tree:add(f.flags, range)
  flags:add(f.slot_version, range)
  flags:add(f.kept, range)
  flags:add(f.close, range)
  flags:add(f.timed, range)
  flags:add(f.scale_only, range)
  flags:add(f.probe, range)
  flags:add(f.again, range)
  flags:add(f.non_finite, range)
end

local function add_values(tree, buffer, kind, count)
  local have = math.min(count * 4, buffer:len() - HEADER_LEN)
  if have > 0 then
    local values = tree:add(f.values, buffer(HEADER_LEN, have))
    local field = kind == KIND_RESULT and f.float or f.integer
    for index = 0, math.min(math.floor(have / 4), SHOWN_VALUES) - 1 do
      values:add(field, buffer(HEADER_LEN + 4 * index, 4)):prepend_text(string.format("[%d] ", index))
    end
  end
  return have == count * 4
end

local function summary(buffer, kind, flags)
  local worker = buffer(10, 2):bitfield(0, 10)
  local again = bit(flags, 1) == 1 and " again" or ""
  local scale_only = bit(flags, 2) == 1 and " scale only" or ""
  local probe = bit(flags, 3) == 1 and " probe" or ""
  local close = bit(flags, 5) == 1 and " close" or ""
  local kept = bit(flags, 6) == 1 and " kept" or ""
  local who = worker == ALL_WORKERS and "all" or tostring(worker)
  return string.format("%s%s%s%s%s%s job %d chunk %d worker %s", KINDS[kind] or "kind " .. kind, again, scale_only, probe, close, kept,
    buffer(2, 2):uint(), buffer(4, 4):uint(), who)
end

function weir.dissector(buffer, pinfo, root)
  if buffer:len() == 0 then
    return 0
  end
  pinfo.cols.protocol = "WEIR"
  local tree = root:add(weir, buffer())
  local first = buffer(0, 1):uint()
  local version, kind = math.floor(first / 16), first % 16
  tree:add(f.version, buffer(0, 1))
  tree:add(f.kind, buffer(0, 1))
  if version ~= PROTOCOL_VERSION then
    tree:add_proto_expert_info(unknown_version)
    return buffer:len()
  end
  if not KINDS[kind] then
    tree:add_proto_expert_info(unknown_kind)
  end
  if buffer:len() < HEADER_LEN then
    tree:add_proto_expert_info(truncated)
    return buffer:len()
  end
  add_flags(tree, buffer(1, 1))
  tree:add(f.job, buffer(2, 2))
  tree:add(f.chunk, buffer(4, 4))
  tree:add(f.slot, buffer(8, 2))
  local worker = tree:add(f.worker, buffer(10, 2))
  if kind == KIND_RESULT and buffer(10, 2):bitfield(0, 10) == ALL_WORKERS then
    worker:append_text(" (all)")
  end
  tree:add(f.transmission, buffer(10, 2))
  tree:add(f.contributors, buffer(12, 8))
  local contributors = bits_set(buffer(12, 4):uint()) + bits_set(buffer(16, 4):uint())
  tree:add(f.contributor_count, buffer(12, 8), contributors):set_generated()
  add_scale(tree, f.scale, buffer(20, 1))
  add_scale(tree, f.next_scale, buffer(21, 1))
  tree:add(f.count, buffer(22, 2))
  if not add_values(tree, buffer, kind, buffer(22, 2):uint()) then
    tree:add_proto_expert_info(truncated)
  end
  local text = summary(buffer, kind, buffer(1, 1):uint())
  pinfo.cols.info = text
  tree:append_text(", " .. text)
  return buffer:len()
end

DissectorTable.get("udp.port"):add(UDP_PORT, weir)
