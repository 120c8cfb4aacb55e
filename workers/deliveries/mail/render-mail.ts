import type { Mail, MailLanguage } from '../../../shared/account-area/mail.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { layOutHtml, layOutText, type MailContent } from './lay-out-mail.ts';
import type { MailTexts, MailWording } from './mail-texts.ts';
import { textsEn } from './texts-en.ts';
import { textsRu } from './texts-ru.ts';

export interface RenderedMail {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** Everything that a rendered mail depends on besides its own data. */
export interface RenderContext {
  readonly service: string;
  readonly supportEmail: string | null;
  readonly isSignUpOpen: boolean;
  /** Whether the address belongs to a user. Only used for sign-in codes. */
  readonly isKnown: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const textsByLanguage: Record<MailLanguage, MailTexts> = { ru: textsRu, en: textsEn };

/** Limits values such as device names, which an attacker can choose. */
const maxValueLength = 100;
/** RFC 5321, 4.5.3.1. */
const maxEmailLength = 254;

/** Turns a value into one short line. A line break would start a new header, or a new line in the text version. */
function toLine(value: string, maxLength = maxValueLength): string {
  return shorten(value.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim(), maxLength);
}

/** Occurs in words that mail programs turn into links. */
const linkLike = /:\/\/|www\.|@|[\p{L}\p{N}]\.\p{L}{2}/iu;
/** Long enough for a name, too short for a sentence. */
const maxLabelLength = 40;

/**
 * Sanitizes an account's label. An attacker with a stolen session may have chosen it to trick the owner, so links are
 * removed and it is cut to the length of a name.
 */
const toName = (label: string): string =>
  toLine(
    toLine(label).replaceAll(/\S+/gu, (word) => (linkLike.test(word) ? '…' : word)),
    maxLabelLength,
  );

/**
 * Renders the subject, text and HTML of a mail. Omits the code if the address belongs to no user and none may be
 * created.
 */
export function renderMail(mail: Mail, context: RenderContext): RenderedMail {
  const { service: name, supportEmail, now } = context;
  const texts = textsByLanguage[mail.language];
  const service = toLine(name);
  const wording = findWording(mail, texts, service, context);
  const digits = findCode(mail, context);
  const content: MailContent = {
    language: mail.language,
    service,
    heading: wording.heading,
    lead: wording.lead,
    code: digits === null ? null : { digits, validity: texts.validity(countMinutes(mail, now)) },
    facts: listFacts(mail, texts),
    advice: digits === null ? [wording.advice] : [wording.advice, texts.neverShare],
    footer: [texts.sentBy(service), ...(supportEmail === null ? [] : [texts.support(supportEmail)])],
  };
  return { subject: wording.subject, text: layOutText(content), html: layOutHtml(content) };
}

function findWording(
  mail: Mail,
  texts: MailTexts,
  service: string,
  { isKnown, isSignUpOpen }: RenderContext,
): MailWording {
  if (mail.kind === 'notice') {
    const wording = texts.notice(mail.event, toName(mail.accountLabel ?? ''), service);
    return mail.isCertain === false ? { ...wording, lead: `${wording.lead} ${texts.uncertain}` } : wording;
  }
  if (mail.kind === 'confirmation-code') return texts.confirmation(mail.action, toName(mail.accountLabel));
  const { purpose, email } = mail;
  if (!hasCode(purpose, isKnown, isSignUpOpen))
    return texts.noProfile(toLine(email, maxEmailLength), service, isSignUpOpen);
  return texts.signIn(purpose === 'signup' && isKnown ? 'signup-of-known' : purpose, service);
}

const hasCode = (purpose: 'login' | 'signup', isKnown: boolean, isSignUpOpen: boolean): boolean =>
  isKnown || (purpose === 'signup' && isSignUpOpen);

function findCode(mail: Mail, { isKnown, isSignUpOpen }: RenderContext): string | null {
  if (mail.kind === 'notice') return null;
  if (mail.kind === 'confirmation-code') return mail.code;
  return hasCode(mail.purpose, isKnown, isSignUpOpen) ? mail.code : null;
}

/** Rounds, so that a few seconds of delay do not turn 10 minutes into 9. */
function countMinutes(mail: Mail, now: number): number {
  return mail.kind === 'notice' ? 0 : Math.max(1, Math.round((mail.expiresAt - now) / 60_000));
}

const formatAmount = (mail: Mail, name: 'balance' | 'threshold'): string | null =>
  mail.kind === 'notice' && mail.amounts !== undefined ? `${mail.amounts[name]} RUB` : null;

function listFacts(mail: Mail, texts: MailTexts): [string, string][] {
  const facts: [string, string | null][] = [
    [texts.when, mail.kind === 'notice' ? texts.formatTime(mail.at) : null],
    [texts.balance, formatAmount(mail, 'balance')],
    [texts.threshold, formatAmount(mail, 'threshold')],
    [texts.device, mail.device ?? null],
    [mail.kind === 'notice' ? texts.address : texts.requestedFrom, mail.address ?? null],
  ];
  return facts.flatMap(([name, value]) => (value === null ? [] : [[name, toLine(value)]]));
}
