import { describeError } from '../../lib/api-error.ts';
import { languages, switchLanguage, useCommon, useLanguage, useMessages } from '../../lib/language.tsx';
import { switchTheme, themes, useTheme } from '../../lib/theme.ts';
import { Card } from '../../ui/card.tsx';
import { Select } from '../../ui/field.tsx';
import { showToast } from '../../ui/toast.tsx';
import type en from './messages.en.ts';
import { TimeZoneChoice } from './time-zone-choice.tsx';

const languageNames = { ru: 'Русский', en: 'English' } as const;
const themeNames = { system: 'themeSystem', light: 'themeLight', dark: 'themeDark' } as const;

/** How pages look and tell time. Language and theme are kept in this browser, the time zone with the user. */
export function AppearanceCard() {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const language = useLanguage();
  const theme = useTheme();
  return (
    <Card title={t('appearance')}>
      <div class="settings-choices">
        <Select
          label={t('language')}
          value={language}
          choices={languages.map((value) => ({ value, label: languageNames[value] }))}
          onChoose={(chosen) => {
            switchLanguage(chosen).catch((error: unknown) =>
              showToast(describeError(error, language), 'error'),
            );
          }}
        />
        <Select
          label={t('theme')}
          value={theme}
          choices={themes.map((value) => ({ value, label: common(themeNames[value]) }))}
          onChoose={switchTheme}
        />
      </div>
      <TimeZoneChoice />
    </Card>
  );
}
