import { parse as parseUuid, stringify as stringifyUuid } from 'uuid';

/**
 * What a worker sends to the waiting api process:
 * - `accepted` identifies the worker
 * - `delta` carries bytes that are ready for the socket
 * - `result` and `error` end the request
 * - `offered` announces a result too large for one frame; it is sent as `piece`s on demand
 * - `stored` says where a stored result is
 * - `moved` replaces stored frames that are now in the object store
 * - `facts` says what was done for the request; it has no number, losing it does no harm, and only requests that want it get
 *   it
 * - `mark` belongs to no request: it requests an acknowledgement of everything before it
 */
export const frameKinds = [
  'accepted',
  'delta',
  'facts',
  'result',
  'stored',
  'error',
  'offered',
  'piece',
  'moved',
  'mark',
] as const;
export type FrameKind = (typeof frameKinds)[number];

/** The byte of each kind in a frame. */
export const kindBytes: Readonly<Record<FrameKind, number>> = {
  accepted: 0,
  delta: 1,
  facts: 2,
  result: 3,
  stored: 4,
  error: 5,
  offered: 6,
  piece: 7,
  moved: 8,
  mark: 9,
};
const kindsByByte = new Map(frameKinds.map((kind) => [kindBytes[kind], kind]));

export interface FrameHeader {
  readonly requestId: string;
  /** Which dispatch of the request this frame belongs to. Frames of an earlier one are stale. */
  readonly attempt: number;
  /** Numbers the frames of one attempt from 0; a gap means that a frame was lost. */
  readonly sequence: number;
  readonly kind: FrameKind;
  /** Completion tokens generated so far. If the worker dies now, the caller is charged for them. */
  readonly tokens: number;
}

export interface Frame extends FrameHeader {
  readonly payload: Buffer;
}

/** length u32 (whole frame) · request id 16 bytes · attempt u16 · sequence u32 · kind u8 · tokens u32 · payload */
export const frameHeaderBytes = 31;

/** Byte offset of the kind in a frame. */
export const kindOffset = 26;

/** Returns the binary form of a request id. A request id is parsed once and written to every frame. */
export function packRequestId(requestId: string): Uint8Array {
  return parseUuid(requestId);
}

/** Encodes the header alone, so that a message of many frames can be assembled with a single copy. */
export function encodeHeader(
  packedId: Uint8Array,
  header: Omit<FrameHeader, 'requestId'>,
  payloadLength: number,
): Buffer {
  const bytes = Buffer.allocUnsafe(frameHeaderBytes);
  bytes.writeUInt32LE(frameHeaderBytes + payloadLength, 0);
  bytes.set(packedId, 4);
  bytes.writeUInt16LE(header.attempt, 20);
  bytes.writeUInt32LE(header.sequence, 22);
  bytes.writeUInt8(kindBytes[header.kind], kindOffset);
  bytes.writeUInt32LE(header.tokens, 27);
  return bytes;
}

export function encodeFrame(frame: Frame): Buffer {
  const header = encodeHeader(packRequestId(frame.requestId), frame, frame.payload.length);
  return Buffer.concat([header, frame.payload]);
}

/** An offered result is split into pieces of this size; only the last one is smaller. */
export const pieceBytes = 512 * 1024;

/** Encodes the payload of an `offered` frame: the length of the whole result. */
export const encodeOffer = (length: number): Buffer => {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(length, 0);
  return bytes;
};

export const decodeOffer = (payload: Buffer): number => payload.readUInt32LE(0);

/** The id in frames that do not belong to a request. */
const noRequest = new Uint8Array(16);

/** Encodes a `mark` frame: the worker that sends it, and how many bytes that worker has sent to this channel. */
export function encodeMark(workerId: string, sentBytes: number): Buffer {
  const payload = Buffer.from(`${workerId} ${sentBytes}`);
  const header = { attempt: 0, sequence: 0, kind: 'mark', tokens: 0 } as const;
  return Buffer.concat([encodeHeader(noRequest, header, payload.length), payload]);
}

export function decodeMark(payload: Buffer): { readonly workerId: string; readonly sentBytes: number } {
  const [workerId = '', sentBytes = '0'] = payload.toString().split(' ');
  return { workerId, sentBytes: Number(sentBytes) };
}

/**
 * Decodes the frames of one message. Payloads are views into it. @throws RangeError if the message is truncated or
 * malformed
 */
export function decodeFrames(message: Buffer): Frame[] {
  const frames: Frame[] = [];
  let at = 0;
  while (at < message.length) {
    const first = decodeFirstFrame(message.subarray(at));
    if (first === null) throw new RangeError(`frame truncated at byte ${at} of ${message.length}`);
    frames.push(first.frame);
    at += first.byteLength;
  }
  return frames;
}

/** Returns the kind of a frame and as much of its payload as these bytes have; null if they are not even its header. */
export function decodeFrameStart(
  bytes: Buffer,
): { readonly kind: FrameKind; readonly payload: Buffer } | null {
  if (bytes.length < frameHeaderBytes) return null;
  const kind = kindsByByte.get(bytes.readUInt8(kindOffset));
  return kind === undefined
    ? null
    : { kind, payload: bytes.subarray(frameHeaderBytes, bytes.readUInt32LE(0)) };
}

/**
 * Decodes the first frame of these bytes. Its payload is a view into them. Returns null if the frame is incomplete.
 * @throws RangeError if it is malformed
 */
export function decodeFirstFrame(
  bytes: Buffer,
): { readonly frame: Frame; readonly byteLength: number } | null {
  if (bytes.length < frameHeaderBytes) return null;
  const byteLength = bytes.readUInt32LE(0);
  const kind = kindsByByte.get(bytes.readUInt8(kindOffset));
  if (byteLength < frameHeaderBytes || kind === undefined) throw new RangeError('malformed frame');
  if (byteLength > bytes.length) return null;
  const frame = {
    requestId: stringifyUuid(bytes.subarray(4, 20)),
    attempt: bytes.readUInt16LE(20),
    sequence: bytes.readUInt32LE(22),
    kind,
    tokens: bytes.readUInt32LE(27),
    payload: bytes.subarray(frameHeaderBytes, byteLength),
  };
  return { frame, byteLength };
}
