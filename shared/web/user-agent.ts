import Bowser from 'bowser';

export const deviceTypes = ['desktop', 'mobile', 'tablet', 'unknown'] as const;
export type DeviceType = (typeof deviceTypes)[number];

/** What a person recognises a device of theirs by, in the list of sessions and in notices. */
export interface DeviceDescription {
  readonly osName: string;
  readonly browserName: string;
  readonly deviceType: DeviceType;
}

/** The parser runs regular expressions over what a caller sent: real headers are shorter than this. */
const maxHeaderLength = 512;
/** Some names are copied from the header as they are. */
const maxNameLength = 64;

const unknownDevice: DeviceDescription = {
  osName: 'unknown',
  browserName: 'unknown',
  deviceType: 'unknown',
};

/** Describes a `User-Agent` header; whatever it does not tell is `unknown`, and so is every bot. */
export function describeUserAgent(header: string | undefined): DeviceDescription {
  const bounded = header?.slice(0, maxHeaderLength).trim() ?? '';
  // The parser throws for an empty header.
  if (bounded === '') return unknownDevice;
  const { os, browser, platform } = Bowser.parse(bounded);
  if (platform.type === 'bot') return unknownDevice;
  return {
    osName: nameOf(os.name),
    browserName: nameOf(browser.name),
    deviceType: deviceTypes.find((type) => type === platform.type) ?? 'unknown',
  };
}

function nameOf(name: string | undefined): string {
  return name?.slice(0, maxNameLength).trim() || 'unknown';
}
