import ipaddr from 'ipaddr.js';

/**
 * Ranges of addresses, written so that their text has the order of the addresses: 32 hexadecimal digits. An IPv4 address
 * is the IPv6 address that it is mapped to, so both forms of it are the same.
 */
interface AddressRange {
  readonly first: bigint;
  readonly last: bigint;
}

const bits = 128;
const mappedBits = bits - 32;

/** An address with a zone, which is meaningless on other machines, is not valid here. */
const addressText = /^[0-9a-fA-F.:]{2,45}$/;

const toNumber = (bytes: readonly number[]): bigint =>
  bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);

const toBytes = (address: ipaddr.IPv4 | ipaddr.IPv6): number[] =>
  (address.kind() === 'ipv4' ? (address as ipaddr.IPv4).toIPv4MappedAddress() : address).toByteArray();

const toDigits = (number: bigint): string => number.toString(16).padStart(bits / 4, '0');

/**
 * Reads an address, or a network such as `10.0.0.0/8`.
 * @returns null if it is neither; bits after the prefix must be zero
 */
export function parseAddressRange(text: string): AddressRange | null {
  const [address = '', prefix, ...more] = text.split('/');
  if (more.length > 0 || !addressText.test(address)) return null;
  const isIpv4 = ipaddr.IPv4.isValidFourPartDecimal(address);
  if (!isIpv4 && !ipaddr.IPv6.isValid(address)) return null;
  const maxPrefix = isIpv4 ? 32 : bits;
  if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number(prefix) > maxPrefix)) return null;
  const length = (prefix === undefined ? maxPrefix : Number(prefix)) + (isIpv4 ? mappedBits : 0);
  const first = toNumber(toBytes(ipaddr.parse(address)));
  const rest = (1n << BigInt(bits - length)) - 1n;
  return (first & rest) === 0n ? { first, last: first | rest } : null;
}

/**
 * Writes a list of addresses and networks for Redis: sorted, and without overlaps (see restrictions.lua).
 * @throws TypeError if one is not valid
 */
export function writeAddressRanges(list: readonly string[]): string {
  const ranges = list.map((text) => {
    const range = parseAddressRange(text);
    if (range === null) throw new TypeError(`${text} is not an address`);
    return range;
  });
  const merged: AddressRange[] = [];
  for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const before = merged.at(-1);
    if (before === undefined || range.first > before.last + 1n) merged.push(range);
    else if (range.last > before.last) merged[merged.length - 1] = { first: before.first, last: range.last };
  }
  return merged.map(({ first, last }) => `${toDigits(first)}-${toDigits(last)}`).join(' ');
}

/** Whether one of the ranges has the address. @param digits as `writeAddress` returns them */
export const isInRanges = (ranges: string, digits: string): boolean =>
  ranges.split(' ').some((range) => {
    const [first = '', last = ''] = range.split('-');
    return first <= digits && digits <= last;
  });

/** For an address that is not known. No range has it. */
const unknownAddress = '-';

/** Writes the address of a caller for Redis. */
export function writeAddress(address: string): string {
  if (!ipaddr.isValid(address)) return unknownAddress;
  return Buffer.from(toBytes(ipaddr.process(address))).toString('hex');
}
