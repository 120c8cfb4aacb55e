/** Settings that are changed together. */
export type SettingsGroup = 'owner' | 'limits' | 'money' | 'access';

export type DialogName = 'credit' | 'rotate' | 'ban' | 'unban' | 'unlink' | 'webhook' | SettingsGroup;

export type OpenDialog = (name: DialogName) => void;
