/** A record of an xls spreadsheet. */
export function makeRecord(type: number, data: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt16LE(type, 0);
  head.writeUInt16LE(data.length, 2);
  return Buffer.concat([head, data]);
}

export interface XlsOptions {
  /** Records of the string table after its eight bytes of counts, each with the content of one record. */
  readonly table: readonly Buffer[];
  /** Row, column and string index of each cell. */
  readonly cells: readonly (readonly [row: number, column: number, textIndex: number])[];
  /** How many times the workbook lists the sheet. */
  readonly listed?: number;
  /** The declared offset of the sheet, if it differs from the real one. */
  readonly place?: number;
  /** Records between the start of the workbook and its string table. */
  readonly more?: Buffer;
}

/** The records of a workbook with one sheet. */
export function makeWorkbook({
  table,
  cells,
  listed = 1,
  place,
  more = Buffer.alloc(0),
}: XlsOptions): Buffer {
  const begin = makeRecord(0x809, Buffer.alloc(16));
  const end = makeRecord(0x0a);
  const [first = Buffer.alloc(0), ...rest] = table;
  const strings = [
    makeRecord(0xfc, Buffer.concat([Buffer.alloc(8), first])),
    ...rest.map((piece) => makeRecord(0x3c, piece)),
  ];
  const sheet = Buffer.alloc(10);
  const before = Buffer.concat([begin, more, ...strings]);
  sheet.writeUInt32LE(place ?? before.length + listed * (4 + sheet.length) + end.length, 0);
  const cellRecords = cells.map(([row, column, textIndex]) => {
    const cell = Buffer.alloc(10);
    cell.writeUInt16LE(row, 0);
    cell.writeUInt16LE(column, 2);
    cell.writeUInt32LE(textIndex, 6);
    return makeRecord(0xfd, cell);
  });
  const sheets = Array.from({ length: listed }, () => makeRecord(0x85, sheet));
  return Buffer.concat([before, ...sheets, end, begin, ...cellRecords, end]);
}

/** A string of the string table. @param flags 1 for two bytes per character, 8 for formats after the string */
export function makeXlsText(text: string, flags = 0): Buffer {
  const head = Buffer.alloc(3);
  head.writeUInt16LE(text.length, 0);
  head.writeUInt8(flags, 2);
  const formats = (flags & 8) === 0 ? [] : [Buffer.from([1, 0])];
  const characters = Buffer.from(text, (flags & 1) === 0 ? 'latin1' : 'utf16le');
  return Buffer.concat([head, ...formats, characters, Buffer.alloc(formats.length * 4)]);
}

const sectorBytes = 512;
const endOfChain = 0xff_ff_ff_fe;
const pad = (bytes: Buffer, size: number): Buffer =>
  Buffer.concat([bytes, Buffer.alloc(Math.ceil(bytes.length / size) * size - bytes.length)]);

/** A compound file with one stream, of at most 60 KB. */
export function makeCompoundFile(name: string, stream: Buffer): Buffer {
  const content = pad(Buffer.concat([stream, Buffer.alloc(Math.max(0, 4_096 - stream.length))]), sectorBytes);
  const sectors = content.length / sectorBytes;
  const head = Buffer.alloc(sectorBytes, 0xff);
  head.set(Buffer.from('d0cf11e0a1b11ae1', 'hex'));
  head.writeUInt16LE(9, 30);
  head.writeUInt32LE(1, 48);
  head.writeUInt32LE(4_096, 56);
  head.writeUInt32LE(endOfChain, 60);
  head.writeUInt32LE(endOfChain, 68);
  head.writeUInt32LE(0, 76);
  // Sector 0 is the allocation table, sector 1 the directory, and sectors from 2 on are the stream.
  const table = Buffer.alloc(sectorBytes, 0xff);
  table.writeUInt32LE(0xff_ff_ff_fd, 0);
  table.writeUInt32LE(endOfChain, 4);
  for (let i = 0; i < sectors; i += 1) table.writeUInt32LE(i + 1 < sectors ? i + 3 : endOfChain, (i + 2) * 4);
  const makeEntry = (entryName: string, type: number, first: number, size: number): Buffer => {
    const entry = Buffer.alloc(128);
    entry.write(entryName, 'utf16le');
    entry.writeUInt16LE(entryName.length * 2 + 2, 64);
    entry.writeUInt8(type, 66);
    entry.writeUInt32LE(first, 116);
    entry.writeUInt32LE(size, 120);
    return entry;
  };
  const entries = [makeEntry('Root Entry', 5, endOfChain, 0), makeEntry(name, 2, 2, content.length)];
  return Buffer.concat([head, table, pad(Buffer.concat(entries), sectorBytes), content]);
}
