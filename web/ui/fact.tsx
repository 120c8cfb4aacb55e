import type { ComponentChildren } from 'preact';
import { Time } from './money.tsx';

/** A name and its value, in a list of facts. */
export const Fact = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

/** A time that may not have come yet, whose place stays the same when it does. */
export const TimeFact = ({ name, time }: { readonly name: string; readonly time: string | null }) => (
  <Fact name={name}>{time === null ? '–' : <Time value={time} />}</Fact>
);
