import Bowser from 'bowser';

export const deviceTypes = ['desktop', 'mobile', 'tablet', 'unknown'] as const;
export type DeviceType = (typeof deviceTypes)[number];

/** Describes a device so that its owner can recognise it in the list of sessions and in notices. */
export interface DeviceDescription {
  readonly osName: string;
  readonly browserName: string;
  readonly deviceType: DeviceType;
}

/** Limits the caller input on which the parser runs regular expressions. Real headers are shorter. */
const maxHeaderLength = 512;

/**
 * The names that are accepted. For an unknown header, the parser takes the browser's name from the header. Mails
 * contain these names, so a caller that requests a code could otherwise put arbitrary text into a mail to someone else.
 */
const osNames = new Set(Object.values(Bowser.OS_MAP));
const browserNames = new Set(Object.values(Bowser.BROWSER_MAP));

const unknown = 'unknown';

const unknownDevice: DeviceDescription = {
  osName: unknown,
  browserName: unknown,
  deviceType: unknown,
};

/**
 * Describes a `User-Agent` header by names that the parser knows. Parts that the header does not specify are `unknown`,
 * and so is every bot.
 */
export function describeUserAgent(header: string | undefined): DeviceDescription {
  const bounded = header?.slice(0, maxHeaderLength).trim() ?? '';
  // The parser throws on an empty header.
  if (bounded === '') return unknownDevice;
  const { os, browser, platform } = Bowser.parse(bounded);
  if (platform.type === 'bot') return unknownDevice;
  return {
    osName: knownName(osNames, os.name),
    browserName: knownName(browserNames, browser.name),
    deviceType: deviceTypes.find((type) => type === platform.type) ?? unknown,
  };
}

/**
 * Returns a device's name for mails, the audit log and support.
 * @returns null if nothing is known about it
 */
export function formatDevice({
  browserName,
  osName,
}: Pick<DeviceDescription, 'browserName' | 'osName'>): string | null {
  const known = [browserName, osName].filter((name) => name !== unknown);
  return known.length === 0 ? null : known.join(', ');
}

function knownName(known: ReadonlySet<string>, name: string | undefined): string {
  return name !== undefined && known.has(name) ? name : unknown;
}
