import { describeError } from '../lib/api-error.ts';
import { useCommon, useLanguage } from '../lib/language.tsx';
import { Field } from './field.tsx';

const codeDigits = 6;

/** Returns the digits of what was typed or pasted: `123-456`, with spaces or with characters that nobody sees. */
const readCode = (text: string): string => text.normalize('NFKC').replaceAll(/\D/g, '').slice(0, codeDigits);

export const isWholeCode = (code: string): boolean => code.length === codeDigits;

/** The field for a mailed code. Phones offer the code of a message. */
export function CodeField({
  value,
  onChange,
  error,
}: {
  readonly value: string;
  readonly onChange: (code: string) => void;
  readonly error: unknown;
}) {
  const common = useCommon();
  const language = useLanguage();
  return (
    <Field
      label={common('code')}
      class="code-input"
      inputMode="numeric"
      autoComplete="one-time-code"
      hasFocus
      spellcheck={false}
      value={value}
      error={error === null || error === undefined ? null : describeError(error, language)}
      onInput={(event) => {
        const code = readCode(event.currentTarget.value);
        // The field shows what counts, also where the code stays the same.
        event.currentTarget.value = code;
        onChange(code);
      }}
    />
  );
}
