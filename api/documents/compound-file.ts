/** Reads the container format of older office documents: a file system in a file ([MS-CFB]). */

const magic = Buffer.from('d0cf11e0a1b11ae1', 'hex');
const headerBytes = 512;
const entryBytes = 128;
const miniSectorBytes = 64;
/** Number of FAT sectors listed in the header. Further ones are listed in separate sectors. */
const headerFatSectors = 109;
/** Higher numbers are markers, such as the end of a chain. */
const lastSector = 0xff_ff_ff_fa;

export const isCompoundFile = (bytes: Buffer): boolean => bytes.subarray(0, magic.length).equals(magic);

/**
 * Reads the streams with these names.
 * @throws RangeError if the file is truncated, damaged or has a cycle, or if streams share sectors
 */
export function readStreams(bytes: Buffer, names: ReadonlySet<string>): Buffer[] {
  const sectorBytes = 2 ** bytes.readUInt16LE(30);
  if (sectorBytes !== 512 && sectorBytes !== 4_096) throw new RangeError('unknown sector size');
  const readSector = (sector: number): Buffer => {
    const at = (sector + 1) * sectorBytes;
    if (at >= bytes.length) throw new RangeError('a sector is past the end of the file');
    return bytes.subarray(at, at + sectorBytes);
  };
  const table = Buffer.concat(listTableSectors(bytes, readSector).map(readSector));
  const readChain = (first: number): Buffer => Buffer.concat(followChain(table, first).map(readSector));
  const directory = readChain(bytes.readUInt32LE(48));
  const miniLimit = bytes.readUInt32LE(56);
  const miniTable = bytes.readUInt32LE(60);
  let minis: { readonly bytes: Buffer; readonly table: Buffer } | null = null;
  const streams: Buffer[] = [];
  let streamBytes = 0;
  const add = (sectors: Buffer, size: number): void => {
    // Streams have no sector in common. Otherwise, a thousand entries could each be the whole file.
    streamBytes += sectors.length;
    if (streamBytes > bytes.length) throw new RangeError('streams share sectors');
    streams.push(sectors.subarray(0, size));
  };
  for (let at = 0; at + entryBytes <= directory.length; at += entryBytes) {
    const nameBytes = Math.min(directory.readUInt16LE(at + 64), 64);
    const name = directory.toString('utf16le', at, at + Math.max(0, nameBytes - 2));
    if (!names.has(name.toLowerCase())) continue;
    const first = directory.readUInt32LE(at + 116);
    const size = directory.readUInt32LE(at + 120);
    if (size >= miniLimit) add(readChain(first), size);
    else {
      // Small streams are stored inside the stream of the first directory entry.
      minis ??= { bytes: readChain(directory.readUInt32LE(116)), table: readChain(miniTable) };
      const { bytes: stored, table } = minis;
      const sectors = followChain(table, first).map((sector) =>
        stored.subarray(sector * miniSectorBytes, (sector + 1) * miniSectorBytes),
      );
      add(Buffer.concat(sectors), size);
    }
  }
  return streams;
}

function listTableSectors(bytes: Buffer, readSector: (sector: number) => Buffer): number[] {
  const sectors: number[] = [];
  const add = (list: Buffer, count: number): void => {
    for (let i = 0; i < count; i += 1) {
      const sector = list.readUInt32LE(i * 4);
      if (sector <= lastSector) sectors.push(sector);
    }
  };
  add(bytes.subarray(76, headerBytes), headerFatSectors);
  const seen = new Set<number>();
  for (let list = bytes.readUInt32LE(68); list <= lastSector;) {
    if (seen.has(list)) throw new RangeError('the table of sectors leads back to itself');
    seen.add(list);
    const sector = readSector(list);
    add(sector, sector.length / 4 - 1);
    list = sector.readUInt32LE(sector.length - 4);
  }
  if (new Set(sectors).size < sectors.length) throw new RangeError('the table of sectors has a duplicate');
  return sectors;
}

function followChain(table: Buffer, first: number): number[] {
  const sectors: number[] = [];
  for (let sector = first; sector <= lastSector; sector = table.readUInt32LE(sector * 4)) {
    sectors.push(sector);
    if (sectors.length > table.length / 4) throw new RangeError('a chain of sectors leads back to itself');
  }
  return sectors;
}
